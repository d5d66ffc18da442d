"""The actions of the screens, and the keys that run them."""
