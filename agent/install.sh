#!/bin/sh
# Installs the Rackrent agent on this machine, or brings an installed one up to date:
#   curl -fsSL https://rackrent.example/agent/install.sh | sh -s -- --token rre_...
# Running it again is safe. Needs Python 3.9 or newer, and curl or wget.
set -eu

# The dashboard fills these two in, quoted, when it serves this script
public_url=@@PUBLIC_URL@@
agent_sha256=@@AGENT_SHA256@@
RACKRENT_URL="${RACKRENT_URL:-$public_url}"
# In a variable, not in an argument of the agent's own command: arguments can be read by every user of the machine
RACKRENT_ENROL_TOKEN="${RACKRENT_ENROL_TOKEN:-}"
AGENT_USER=rackrent-agent
UNIT=/etc/systemd/system/rackrent-agent.service
CONFIGURATION_ERROR=78

ca_file= prefix= action=install start=yes self_update= allow_http= no_serving=

usage() {
    cat <<'TEXT'
Options:
  --token rre_...     enrolment token (or in the variable RACKRENT_ENROL_TOKEN); not needed when already enrolled
  --url URL           the dashboard's address
  --ca-file FILE      trust this certificate authority, and no other
  --allow-http        send tokens unencrypted, on a network you trust
  --no-serving        do not read the metrics of serving engines (vLLM, TGI, TensorRT-LLM, Triton) that run here
  --self-update       let the agent install newer versions that the dashboard serves
  --run-as-root       without a user of its own: Jupyter servers and processes of all users can be seen then
  --no-start          install only
  --prefix DIR        everything below DIR, as the current user, without a service (for trying it out)
  --uninstall         stop the agent and remove it with its settings
TEXT
}

say() { printf 'rackrent-agent: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ] && [ -z "$prefix" ]; }
has_own_user() { is_root && [ "$AGENT_USER" != root ]; }
uses_systemd() { is_root && [ -d /run/systemd/system ] && have systemctl; }

read_options() {
    while [ $# -gt 0 ]; do
        case "$1" in
            --token|--url|--ca-file|--prefix) [ $# -ge 2 ] || die "$1 needs a value" ;;
        esac
        case "$1" in
            --token) RACKRENT_ENROL_TOKEN=$2; shift ;;
            --url) RACKRENT_URL=$2; shift ;;
            --ca-file) ca_file=$(absolute "$2"); shift ;;
            --prefix) mkdir -p "$2"; prefix=$(absolute "$2"); shift ;;
            --allow-http) allow_http=yes ;;
            --no-serving) no_serving=yes ;;
            --self-update) self_update=yes ;;
            --run-as-root) AGENT_USER=root ;;
            --no-start) start=no ;;
            --uninstall) action=uninstall ;;
            --help|-h) usage; exit 0 ;;
            *) usage >&2; die "unknown option $1" ;;
        esac
        shift
    done
}

absolute() {
    [ -e "$1" ] || die "$1 does not exist"
    if [ -d "$1" ]; then (cd "$1" && pwd); else echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"; fi
}

choose_places() {
    if [ -n "$prefix" ]; then
        program_dir=$prefix/lib settings=$prefix/etc/agent.json state=$prefix/state
    elif is_root; then
        program_dir=/usr/local/lib/rackrent-agent settings=/etc/rackrent/agent.json state=/var/lib/rackrent-agent
    else
        program_dir=$HOME/.local/share/rackrent-agent
        settings=${XDG_CONFIG_HOME:-$HOME/.config}/rackrent/agent.json
        state=${XDG_STATE_HOME:-$HOME/.local/state}/rackrent-agent
    fi
    # An agent that may replace itself must own the place where it lies
    [ -z "$self_update" ] || program_dir=$state/program
    program=$program_dir/rackrent-agent.pyz
    pid_file=$state/agent.pid
}

# The system's own first: one in somebody's home directory or environment may vanish, or be closed to the agent's user
find_python() {
    for python in /usr/bin/python3 python3 python3.13 python3.12 python3.11 python3.10 python3.9 /opt/conda/bin/python3; do
        python=$(command -v "$python" 2>/dev/null) || continue
        if as_agent "$python" -c 'import sys, ctypes, sqlite3, ssl; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; then
            python=$(as_agent "$python" -c 'import sys; print(sys.executable)')
            return 0
        fi
    done
    die "no Python 3.9 or newer with ctypes, sqlite3 and ssl was found that the user $AGENT_USER may run: install python3, or add --run-as-root"
}

# Runs a command as the agent's own user
as_agent() {
    if ! has_own_user; then
        "$@"
    elif have setpriv; then
        setpriv --reuid "$AGENT_USER" --regid "$(id -g "$AGENT_USER")" --clear-groups "$@"
    elif have runuser; then
        runuser -u "$AGENT_USER" -- "$@"
    else
        die "neither setpriv nor runuser was found: install util-linux, or add --run-as-root"
    fi
}

download() { # URL FILE
    if have curl; then
        curl -fsSL --retry 3 ${ca_file:+--cacert "$ca_file"} -o "$2" "$1"
    elif have wget; then
        wget -q ${ca_file:+--ca-certificate="$ca_file"} -O "$2" "$1"
    else
        die "neither curl nor wget was found: install one of them"
    fi
}

sha256() {
    "$python" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

check_address() {
    case "$RACKRENT_URL" in
        *@@*|'') die "give the dashboard's address with --url" ;;
        https://*|http://127.0.0.1*|http://localhost*) ;;
        http://*) [ -n "$allow_http" ] || die "$RACKRENT_URL is not encrypted: use https, or add --allow-http" ;;
        *) die "$RACKRENT_URL is no address: write https://..." ;;
    esac
    RACKRENT_URL=${RACKRENT_URL%/}
}

install_program() {
    mkdir -p "$program_dir"
    new=$program.new
    download "$RACKRENT_URL/agent/rackrent-agent.pyz" "$new" || { rm -f "$new"; die "the agent could not be downloaded from $RACKRENT_URL"; }
    case "$agent_sha256" in
        *@@*|'') rm -f "$new"; die "this script names no hash to check the download with: fetch it from the dashboard" ;;
    esac
    if [ "$(sha256 "$new")" != "$agent_sha256" ]; then
        rm -f "$new"
        die "what was downloaded does not have the hash that this script names: fetch the script again"
    fi
    chmod 755 "$new"
    mv -f "$new" "$program"
}

make_user() {
    has_own_user || return 0
    id "$AGENT_USER" >/dev/null 2>&1 && return 0
    if have useradd; then
        useradd --system --no-create-home --home-dir "$state" --shell /usr/sbin/nologin "$AGENT_USER"
    elif have adduser; then
        adduser -S -D -H -h "$state" -s /sbin/nologin "$AGENT_USER"
    else
        die "neither useradd nor adduser was found: create the user $AGENT_USER yourself and run this again"
    fi
}

make_directories() {
    mkdir -p "$state" "$(dirname "$settings")"
    chmod 700 "$state"
    if has_own_user; then
        chown "$AGENT_USER" "$state"
        [ -z "$self_update" ] || chown -R "$AGENT_USER" "$program_dir"
    fi
}

enrol() {
    if [ -z "$RACKRENT_ENROL_TOKEN" ]; then
        [ -f "$settings" ] || die "this machine is not enrolled yet: add --token rre_..."
        say "keeping the enrolment in $settings"
        return 0
    fi
    export RACKRENT_ENROL_TOKEN
    "$python" "$program" enrol --url "$RACKRENT_URL" --config "$settings" --state-dir "$state" \
        ${ca_file:+--ca-file "$ca_file"} ${allow_http:+--allow-http} ${no_serving:+--no-serving}
    unset RACKRENT_ENROL_TOKEN
    if has_own_user; then chown "$AGENT_USER" "$settings"; fi
}

write_unit() {
    cat >"$UNIT" <<TEXT
[Unit]
Description=Rackrent agent
Wants=network-online.target
After=network-online.target

[Service]
User=$AGENT_USER
ExecStart=$python $program run --config $settings --state-dir $state${self_update:+ --self-update}
Restart=always
RestartSec=10
RestartPreventExitStatus=$CONFIGURATION_ERROR
KillMode=mixed
TimeoutStopSec=20
Nice=10
TasksMax=64
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=$state
ProtectHome=read-only
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelTunables=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=multi-user.target
TEXT
}

start_service() {
    write_unit
    systemctl daemon-reload
    systemctl enable --quiet rackrent-agent.service
    systemctl restart rackrent-agent.service
    say "running as the service rackrent-agent; its log: journalctl -u rackrent-agent"
}

# Without systemd (a container): in the background, started again when it ends, unless its settings are wrong
start_background() {
    stop_background
    log=$state/agent.log
    loop="echo \$\$ >'$pid_file'
while :; do
    '$python' '$program' run --config '$settings' --state-dir '$state' ${self_update:+--self-update} &
    child=\$!
    trap 'kill \$child \$! 2>/dev/null; wait; exit 0' TERM INT
    wait \$child
    [ \$? -ne $CONFIGURATION_ERROR ] || exit $CONFIGURATION_ERROR
    sleep 10 & wait \$!
done"
    # The log is opened here, for the agent's user may only write on; in brackets, so that nothing keeps our own output open
    (as_agent nohup sh -c "$loop" rackrent-agent-loop) >>"$log" 2>&1 </dev/null &
    say "running in the background; its log: $log"
    say "a container forgets it when it restarts: run this installer again, or add it to the start command"
}

# The process of the pid file only if it still is our loop: numbers are used again
stop_background() {
    [ -f "$pid_file" ] || return 0
    pid=$(cat "$pid_file")
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q rackrent-agent; then
        kill "$pid" 2>/dev/null || true
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 1
        done
    fi
    rm -f "$pid_file"
}

uninstall() {
    if uses_systemd && [ -f "$UNIT" ]; then
        systemctl disable --now --quiet rackrent-agent.service || true
        rm -f "$UNIT"
        systemctl daemon-reload
    fi
    stop_background
    rm -rf "$program_dir" "$state"
    rm -f "$settings"
    rmdir "$(dirname "$settings")" 2>/dev/null || true
    if has_own_user && id "$AGENT_USER" >/dev/null 2>&1; then
        { have userdel && userdel "$AGENT_USER"; } || { have deluser && deluser "$AGENT_USER"; } || say "the user $AGENT_USER stays: remove it by hand"
    fi
    say "removed; the machine's history stays in the dashboard"
}

main() {
    read_options "$@"
    choose_places
    if [ "$action" = uninstall ]; then
        uninstall
        return 0
    fi
    check_address
    make_user
    find_python
    make_directories
    install_program
    make_directories
    enrol
    [ "$start" = yes ] || { say "installed in $program_dir, not started"; return 0; }
    if uses_systemd; then start_service; else start_background; fi
}

# In one piece at the end: a download that was cut off does nothing
main "$@"
