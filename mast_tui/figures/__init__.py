"""Numbers of studies, judges and failures; no words, no drawing."""
