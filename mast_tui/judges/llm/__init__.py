"""A judge that asks a language model, through any server that speaks the OpenAI API."""
