"""What a workspace knows, as the arrays that figures are made of."""
