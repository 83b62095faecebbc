"""The inspector: a web page on which people see and correct what is remembered."""
