"""Write the scores that mast-tui export --format inspect-scores wrote into copies of the logs."""

import json
from pathlib import Path

from inspect_ai.log import edit_score, read_eval_log, write_eval_log
from inspect_ai.scorer import ScoreEdit

logs = {}
for line in Path("scores.jsonl").read_text("utf-8").splitlines():
    score = json.loads(line)
    path = score["log"]
    if path not in logs:
        logs[path] = read_eval_log(path)
    edit = ScoreEdit(**score["edit"])
    edit_score(logs[path], score["sample_id"], score["score_name"], edit, epoch=score["epoch"])

# A changed log is another trace, so the copies are in another folder.
Path("scored").mkdir(exist_ok=True)
for path, log in logs.items():
    write_eval_log(log, f"scored/{Path(path).name}")
