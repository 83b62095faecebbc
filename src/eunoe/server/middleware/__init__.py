"""What every request passes on its way in, one ASGI class for each."""
