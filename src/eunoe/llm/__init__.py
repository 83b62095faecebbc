"""The language model: a guest behind one seam. Without one everything still works."""
