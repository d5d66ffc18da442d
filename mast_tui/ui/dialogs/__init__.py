"""Dialogs over a screen: questions, choices and forms."""
