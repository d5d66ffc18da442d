"""The effect of a call, read from its tool, program and arguments."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.judges.rules.effects import Effect, command_of, effect_of, effect_of_command


def test_commands_that_read() -> None:
    for command in [
        "kubectl get pods -n shop", "kubectl delete pod cart-1 --dry-run=client",
        "kubectl -n shop logs deploy/cart --tail=50 | grep -i error",
        "kubectl rollout status deploy/cart", "kubectl rollout history deploy/cart 2>&1 | tail -3",
        "kubectl exec cart-1 -- cat /etc/resolv.conf",
        "docker exec -it -e A=b cart grep -i error /var/log/cart.log",
        "kubectl -n shop exec -it valkey-0 -- valkey-cli -p 6379 info memory",
        "kubectl config get-contexts", "ssh -p 2222 -i key node-1 ls -l",
        "helm history shop", "git status && git diff HEAD~1", "sed -n '1,200p' src/main.py",
        "find . -name '*.py' -exec grep -l cart {} +",
        "curl -s http://cart:8080/healthz > /dev/null",
        "curl -s -G http://prom/api/v1/query --data-urlencode 'query=up'",
        "curl -s -X POST http://prom/api/v1/query -d 'query=up'",
        'psql -c "select count(*) from orders"',
        "kafka-consumer-groups.sh --describe --group fraud",
        "timeout -k 5 30 bash -c 'kubectl get pods | wc -l'", "sudo -u app cat /var/log/app.log",
        "for p in a b; do kubectl logs $p; done",
        "python3 -c 'import json,sys; print(json.load(sys.stdin)[0])'",
        "python3 - <<'PY'\nimport csv\nprint(sum(1 for _ in csv.reader(open('a.csv'))))\nPY",
        "python -m pytest -q", "uv run --with x pytest", "npm run test:unit", "npx tsc --noEmit",
        "awk -F'\\t' '$6>5 {print $1}' logs.tsv", "grep 'kubectl delete' runbook.md", "uv pip list",
        'echo "then run: rm -rf /data"; ls',
    ]:  # fmt: skip
        assert effect_of_command(command) is Effect.READS


def test_commands_that_change() -> None:
    for command in [
        "kubectl rollout restart deploy/cart",
        "kubectl -n shop set env deploy/cart A=b | cat",
        "kubectl exec valkey-0 -- valkey-cli config set maxmemory 2gb",
        "kubectl get deploy cart -o yaml | sed 's/a/b/' | kubectl apply -f -",
        "kubectl apply -f - <<EOF\nkind: ConfigMap\nEOF",
        "cat > agent_output.json <<'EOF'\n{}\nEOF", "echo ok >> notes.txt",
        "printf '%s' x > /tmp/x", "sed -i 's/a/b/' values.yaml", "helm upgrade shop ./chart",
        "git checkout .", "pip install requests", "sudo systemctl restart nginx",
        "curl -X DELETE http://flagd/flags/x", 'psql -c "update orders set state = 1"',
        "kafka-consumer-groups.sh --group fraud --reset-offsets --to-latest --execute",
        "docker exec cart sed -i s/a/b/ values.yaml", "ssh node-1 sed -i s/a/b/ values.yaml",
        "docker exec -u root cart bash -lc 'rm -rf build'",
        "bash -lc 'rm -rf build'", "ssh node-1 sudo systemctl restart kubelet",
        "env A=b timeout 5 kubectl delete pod cart-1",
        "python3 - <<PY\nopen('out.json', 'w').write('{}')\nPY", "docker compose up -d",
    ]:  # fmt: skip
        assert effect_of_command(command) is Effect.CHANGES


NEITHER = ("", "sleep 30", "cd /srv && pwd", "echo done", "date")
UNKNOWN = ("./deploy.sh", "make", "python migrate.py", "frobnicate --all")


def test_other_commands_are_not_guessed() -> None:
    for command in [*NEITHER, *UNKNOWN]:
        effect = Effect.NONE if command in NEITHER else Effect.UNKNOWN
        assert effect_of_command(command) is effect


def test_the_effect_of_tools() -> None:
    for tool, arguments, effect in [
        ("get_order_details", '{"order_id": "#W1"}', Effect.READS),
        ("cancel_pending_order", '{"order_id": "#W1"}', Effect.CHANGES),
        ("exchangeDeliveredOrderItems", "{}", Effect.CHANGES),
        ("think", '{"thought": "delete it?"}', Effect.NONE),
        ("update_plan", '{"plan": []}', Effect.NONE),
        ("promql", '{"query": "up"}', Effect.READS),
        ("page_team", '{"team": "payments"}', Effect.CHANGES),
        ("frobnicate", "{}", Effect.UNKNOWN),
        ("shell", '{"command": ["bash", "-lc", "kubectl get pods"]}', Effect.READS),
        ("shell", '{"command": ["kubectl", "delete", "pod", "a"]}', Effect.CHANGES),
        ("exec_command", '{"cmd": "rm x", "yield_time_ms": 1000}', Effect.CHANGES),
        ("kubectl", '{"command": "kubectl get pods"}', Effect.READS),
        ("kubectl", '{"args": "scale deploy/cart --replicas=3"}', Effect.CHANGES),
        ("apply_patch", "*** Begin Patch", Effect.CHANGES),
        ("python", '{"code": "print(1 + 1)"}', Effect.READS),
        ("ipython", '{"code": "api.like_song(3)"}', Effect.CHANGES),
        ("text_editor", '{"command": "view", "path": "a.py"}', Effect.READS),
        ("text_editor", '{"command": "create", "path": "a.py"}', Effect.CHANGES),
        ("shell", '{"command": "cd a && git commit -am x"}', Effect.RECORDS),
        ("shell", '{"command": "rm a; pytest | tail && git push"}', Effect.CHANGES_AND_READS),
        ("", "", Effect.UNKNOWN), ("shell", "uv run " * 3000, Effect.UNKNOWN),
    ]:  # fmt: skip
        assert effect_of(tool, arguments, command_of(tool, arguments)) is effect


@given(st.text())
def test_a_command_is_read_from_json(command: str) -> None:
    call = json.dumps({"command": "create", "path": command})
    assert command_of("text_editor", call) == call, "editors name only a part of the call"
    if command:
        assert command_of("shell", json.dumps({"cmd": command})) == command
        assert command_of("shell", json.dumps({"command": ["bash", "-lc", command]})) == command


@given(st.one_of(st.text(), st.text("kubectl rm<EOF>'\"\\;|&$(){}[]\n -:,")))
def test_any_text_has_an_effect(text: str) -> None:
    assert effect_of("shell", text, command_of("shell", text)) in Effect
    assert effect_of("kubectl", text, command_of("shell", text)) in Effect
    assert effect_of(text, text, command_of("shell", text)) in Effect
