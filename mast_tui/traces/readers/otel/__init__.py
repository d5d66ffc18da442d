"""OpenTelemetry: spans of agents in its conventions and in OpenInference."""
