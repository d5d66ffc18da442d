"""One file per screen; a screen is imported when it is first shown."""
