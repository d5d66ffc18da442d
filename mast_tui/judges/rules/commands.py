"""The effects of well-known commands, tools and code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


WITHOUT_EFFECT: Final = word_set(
    "cd pwd echo printf sleep wait date true false : set export source . whoami clear exit"
    " pushd popd which type unset trap test [ [[ tput for case done fi esac break in"
)
"""Shell commands that neither change nor read anything that matters."""

READING: Final = word_set(
    "ls cat head tail less more grep egrep fgrep rg ag find fd wc sort uniq cut tr awk gawk"
    " jq yq column diff cmp comm stat file du df tree nl od xxd hexdump strings md5sum"
    " sha256sum base64 env printenv id uname hostname ps top htop free uptime vmstat iostat"
    " netstat ss lsof dig nslookup host ping traceroute curl wget http promql promtool amtool"
    " logcli grpcurl pytest tox nox ruff mypy flake8 pylint eslint tsc jest vitest rspec"
    " phpunit zcat zgrep journalctl dmesg history man help python python3 node ruby perl bc"
    " expr seq paste join tac rev fold fmt realpath readlink basename dirname bat csvtool"
    " csvcut sqlite3 psql mysql mongosh redis-cli valkey-cli kcat openssl nc telnet xmllint"
    " sed"
)
"""Shell commands that read something, unless their arguments say otherwise."""

CHANGING: Final = word_set(
    "rm mv cp mkdir rmdir touch ln chmod chown chgrp dd truncate tee install patch"
    " apply_patch kill pkill killall reboot shutdown useradd usermod mount umount crontab"
    " rsync scp ansible ansible-playbook tar unzip gzip gunzip"
)
"""Shell commands that change something."""

PACKAGE_TOOLS: Final = word_set(
    "apt apt-get yum dnf apk brew pip pip3 npm yarn pnpm bun gem go cargo poetry uv"
)

WRAPPERS: Final = word_set(
    "sudo timeout nohup time watch xargs env nice stdbuf command exec busybox npx bunx uvx"
)
"""Commands with another command as their arguments."""

KEYWORDS: Final = word_set("if then elif else while until do ! { }")
"""Words of the shell's grammar before a command."""

SHELL_TOOLS: Final = word_set("bash sh zsh dash")

VERBS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "kubectl": (
        word_set(
            "get describe logs log top explain version api-resources api-versions cluster-info diff"
            " events wait status history view current-context get-contexts can-i port-forward proxy"
        ),
        word_set(
            "apply create delete patch edit scale rollout restart undo pause resume set annotate"
            " label cordon uncordon drain taint replace cp run expose autoscale debug use-context"
        ),
    ),
    "helm": (
        word_set("list ls status get history show template lint search version diff"),
        word_set("install upgrade rollback uninstall delete"),
    ),
    "git": (
        word_set("status diff log show blame branch grep ls-files remote rev-parse describe fetch"),
        word_set(
            "add commit checkout switch restore reset revert merge rebase push pull apply am stash"
            " clean rm mv cherry-pick tag clone init"
        ),
    ),
    "docker": (
        word_set("ps logs inspect images image stats top version info events port diff"),
        word_set("run start stop restart rm rmi kill build pull push up down compose cp create"),
    ),
    "systemctl": (
        word_set("status is-active is-enabled list-units list-timers show cat is-failed"),
        word_set("start stop restart reload enable disable mask unmask daemon-reload reset-failed"),
    ),
    "argocd": (
        word_set("get list history diff manifests logs resources wait"),
        word_set("sync rollback set delete create terminate-op patch"),
    ),
    "terraform": (
        word_set("plan show output state validate version providers graph"),
        word_set("apply destroy import taint untaint refresh init"),
    ),
}
"""The subcommands of programs: those that read, and those that change."""

GIT_RECORDS: Final = word_set("add commit push tag")
"""The subcommands of git that record the work and do not change it."""

LOOKING_VERBS: Final = word_set(
    "get list ls read search find fetch query describe view show check look lookup calculate"
    " compute inspect open count browse visit scroll page status load print fetch retrieve"
    " grep cat verify validate test preview download logs log metrics trace traces promql"
    " summarize diff peek head tail stat explain info history profile analyze analyse select"
    " scan examine"
)
CHANGING_VERBS: Final = word_set(
    "change create update delete set write edit apply patch modify cancel exchange return"
    " book send add remove insert put post restart rollback scale deploy upload submit"
    " transfer replace rename move copy append reset enable disable toggle start stop kill"
    " drain cordon resize revert commit push merge publish approve reject assign pay refund"
    " charge order install uninstall save store rate like unlike follow unfollow play pause"
    " next previous archive close reopen ack silence mute rotate flush purge sync redeploy"
    " failover promote page notify"
)
IDLE_VERBS: Final = word_set(
    "think plan note reflect wait sleep noop finish done terminate respond todo"
)
"""First words of the names of tools that neither read nor change anything."""

KNOWN_VERBS: Final = LOOKING_VERBS | CHANGING_VERBS | IDLE_VERBS

HANDING_OVER: Final = word_set(
    "send_message reply ask ask_agent ask_user message_agent handoff hand_over delegate"
    " delegate_task transfer_to_agent transfer_to_human transfer_to_human_agents complete_task"
)
"""Tools and functions with which agents talk to each other or close the task. They change nothing
that a later call can show."""

CODE_CHANGES: Final = re.compile(
    r"open\([^)\n]*,\s*(?:mode\s*=\s*)?['\"][rb]*[wax]"
    r"|\.write(?:_text|_bytes|lines)?\(|json\.dump\(|\.to_(?:csv|json|parquet|sql|excel)\("
    r"|os\.(?:remove|rename|unlink|mkdir|makedirs|system|replace)\(|shutil\.\w+\("
    r"|subprocess\.|requests\.(?:post|put|patch|delete)\(|\.commit\(\)|\.savefig\("
)
"""Code that changes something outside its own process."""

SQL_CHANGES: Final = re.compile(
    r"\b(?:insert\s+into|update\s+\w+\s+set|delete\s+from|drop\s+\w+|alter\s+\w+"
    r"|create\s+(?:table|index|role|user|database)|truncate|grant|revoke|vacuum|reindex"
    r"|pg_terminate_backend|pg_cancel_backend|pg_reload_conf)\b",
    re.IGNORECASE,
)
STORE_CHANGES: Final = re.compile(
    r"\b(?:set|del|unlink|flushall|flushdb|expire|lpush|rpush|lpop|rpop|hset|hdel|sadd|srem|zadd"
    r"|incr|decr|rename|restore|config\s+set|config\s+rewrite|client\s+kill|script\s+flush|replicaof)\b",
    re.IGNORECASE,
)
"""Commands of Redis-like stores that change something."""

KAFKA_CHANGES: Final = re.compile(
    r"--(?:execute|create|delete|alter|delete-offsets|add-config|delete-config)\b"
)
