"""What commands share: options, who asks, what is written."""
