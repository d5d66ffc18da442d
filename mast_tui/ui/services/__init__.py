"""Services that outlive a screen."""
