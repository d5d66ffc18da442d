#!/bin/sh
# Send the files that mast-tui export --format langfuse, phoenix and langsmith wrote.
while IFS= read -r body; do curl -sS -u "$PUBLIC_KEY:$SECRET_KEY" -H 'Content-Type: application/json' -d "$body" "$LANGFUSE_HOST/api/public/scores"; done < scores.jsonl
jq .span_annotations annotations.json | curl -sS -H 'Content-Type: application/json' -d @- "$PHOENIX_HOST/v1/span_annotations?sync=true"
while IFS= read -r body; do curl -sS -H "X-Api-Key: $LANGSMITH_API_KEY" -H 'Content-Type: application/json' -d "$body" https://api.smith.langchain.com/api/v1/feedback; done < feedback.jsonl
