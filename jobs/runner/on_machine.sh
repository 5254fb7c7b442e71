# What is done on a machine for one job, by name: sh -c "$(this)" rackrent ACT MARKER [argument …]. POSIX sh, no installation.
# Everything lies in ~/.rackrent/jobs/MARKER: work/ (where the command runs), command.sh, environment, log, pid, boot, exit.
set -u
umask 077
act=$1 marker=$2
case $marker in rr-job-*[!a-z0-9-]* | '') echo "error=marker"; exit 64 ;; rr-job-????????*) ;; *) echo "error=marker"; exit 64 ;; esac
base=${RACKRENT_BASE:-$HOME/.rackrent/jobs}
dir=$base/$marker

boot_id() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown; }

# Every process of the job but its keeper: by the marker in its environment, or by the session that the keeper leads.
tree() {
    keeper=$(cat "$dir/pid" 2>/dev/null || echo 0)
    {
        grep -ls "RACKRENT_JOB=$marker" /proc/[0-9]*/environ | cut -d/ -f3
        [ "$keeper" != 0 ] && for stat in /proc/[0-9]*/stat; do
            read -r line 2>/dev/null <"$stat" || continue
            pid=${line%% *}
            # The name of a program may hold blanks and brackets: what follows its last bracket is fixed, the session fourth.
            set -- ${line##*)}
            [ "${4:-0}" = "$keeper" ] && echo "$pid"
        done
    } | grep -vx "$keeper" | sort -u
}

is_alive() {
    keeper=$(cat "$dir/pid" 2>/dev/null) || return 1
    [ "$(cat "$dir/boot" 2>/dev/null)" = "$(boot_id)" ] && grep -q "RACKRENT_JOB=$marker" "/proc/$keeper/environ" 2>/dev/null
}

case $act in
prepare)
    # Standard input: a tar of files below the job's directory.
    mkdir -p "$dir/work" && tar -xf - -C "$dir" && echo "prepared=1"
    ;;
facts)
    # What the machine is, one name=value a line; no question holds it up.
    cd "$dir" 2>/dev/null
    ask() { if command -v timeout >/dev/null 2>&1; then timeout 10 "$@" 2>/dev/null; else "$@" 2>/dev/null; fi; }
    [ -s "$dir/venv" ] && PATH=$(cat "$dir/venv")/bin:$PATH
    echo "system=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}")"
    echo "cpus=$(ask nproc)"
    awk '$1 == "MemTotal:" { print "memory_kib=" $2 } $1 == "MemAvailable:" { print "memory_available_kib=" $2 }' /proc/meminfo 2>/dev/null
    echo "memory_limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)"
    ask df -Pk . | awk 'NR == 2 { print "disk_free_kib=" $4 }'
    ask df -Pk /dev/shm | awk 'NR == 2 { print "shared_memory_kib=" $2 }'
    echo "driver=$(ask nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    ask nvidia-smi --query-gpu=name,memory.total,memory.used --format=csv,noheader,nounits | head -n 64 | awk '{ print "gpu" NR "=" $0 }'
    ask nvcc --version | sed -n 's/.*release \([0-9.]*\).*/nvcc=\1/p'
    python=$(command -v python3 || command -v python) && ask "$python" -c '
import importlib.metadata, importlib.util, platform, re
print("python=" + platform.python_version())
names = """torch transformers accelerate peft trl datasets deepspeed bitsandbytes flash-attn xformers triton vllm tensorrt-llm colossalai
paddlepaddle-gpu paddlenlp megatron-core transformer-engine megatron-bridge llmcompressor jupyterlab numpy"""
for name in names.split():
    try:
        print("package." + name + "=" + importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
found = importlib.util.find_spec("torch")
if found and found.submodule_search_locations:
    # Not imported: that takes seconds, and memory of the GPU.
    text = open(found.submodule_search_locations[0] + "/version.py").read()
    cuda = re.search(r"^cuda\b[^=\n]*= *(.+)$", text, re.M)
    print("torch_cuda=" + (cuda.group(1).strip("\"\x27 ").lower() if cuda else ""))
'
    exit 0
    ;;
install)
    # The launcher's install.sh, detached. Its environment is kept by the hash of its text: whoever comes with the same again finds it made.
    case $3 in '' | *[!a-f0-9]*) echo "error=hash"; exit 64 ;; esac
    cd "$dir/work" && [ -f install.sh ] || { echo "error=not_prepared"; exit 65; }
    if mkdir "$dir/installing" 2>/dev/null; then
        mkdir -p "${base%/*}/environments"
        RACKRENT_JOB=$marker RACKRENT_DIRECTORY=$dir RACKRENT_VENV=${base%/*}/environments/$3 setsid sh -c '
            cd "$RACKRENT_DIRECTORY/work" || exit 66
            echo $$ >../install.pid
            (
                command -v flock >/dev/null 2>&1 && flock 9
                if [ -f "$RACKRENT_VENV/installed" ]; then
                    echo "What install.sh installs is there already: $RACKRENT_VENV"
                    exit 0
                fi
                rm -rf "$RACKRENT_VENV"
                set -a
                [ -f ../environment ] && . ../environment
                set +a
                VENV=$RACKRENT_VENV bash install.sh && touch "$RACKRENT_VENV/installed"
            ) >>../log 2>&1 </dev/null 9>"$RACKRENT_VENV.lock"
            code=$?
            [ $code = 0 ] && echo "$RACKRENT_VENV" >../venv
            echo $code >../install.new && mv ../install.new ../install.exit
        ' >/dev/null 2>&1 </dev/null &
        tries=0
        while [ ! -s "$dir/install.pid" ] && [ $tries -lt 50 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
    fi
    echo "installs=1"
    ;;
unpack)
    # Standard input: a gzipped tar that we packed ourselves, of plain files and folders below the place where the command runs.
    mkdir -p "$dir/work" && tar -xzf - -C "$dir/work" && echo "unpacked=1"
    ;;
launch)
    [ -f "$dir/command.sh" ] || { echo "error=not_prepared"; exit 65; }
    # A folder is made once: whoever comes later finds the job launched.
    if mkdir "$dir/launched" 2>/dev/null; then
        cd "$dir/work" || exit 66
        RACKRENT_JOB=$marker RACKRENT_DIRECTORY=$dir setsid sh -c '
            cd "$RACKRENT_DIRECTORY/work" || exit 66
            cat /proc/sys/kernel/random/boot_id >../boot 2>/dev/null || echo unknown >../boot
            echo $$ >../pid.new && mv ../pid.new ../pid
            trap "" TERM INT HUP
            (
                trap - TERM INT HUP
                set -a
                [ -f ../environment ] && . ../environment
                set +a
                rm -f ../environment
                exec sh ../command.sh
            ) >>../log 2>&1 </dev/null &
            child=$!
            while :; do
                wait $child
                code=$?
                kill -0 $child 2>/dev/null || break
            done
            echo $code >../exit.new && mv ../exit.new ../exit
        ' >/dev/null 2>&1 </dev/null &
        tries=0
        while [ ! -s "$dir/pid" ] && [ $tries -lt 50 ]; do
            tries=$((tries + 1))
            sleep 0.1
        done
        echo "launched=now"
    else
        echo "launched=before"
    fi
    ;;
look)
    [ -d "$dir/launched" ] && echo "launched=1"
    [ -s "$dir/pid" ] && echo "pid=$(cat "$dir/pid")"
    is_alive && echo "alive=1"
    [ -s "$dir/exit" ] && echo "exit=$(cat "$dir/exit")"
    # First whether it lives: what has died since has said before how it ended.
    installing=
    [ -s "$dir/install.pid" ] && grep -q "RACKRENT_JOB=$marker" "/proc/$(cat "$dir/install.pid")/environ" 2>/dev/null && installing=1
    if [ -s "$dir/install.exit" ]; then
        echo "installed=$(cat "$dir/install.exit")"
    elif [ -n "$installing" ]; then
        echo "installing=1"
    fi
    [ -f "$dir/log" ] && echo "size=$(wc -c <"$dir/log")"
    [ -s "$dir/boot" ] && echo "boot=$(cat "$dir/boot")"
    echo "now_boot=$(boot_id)"
    ;;
read)
    # From a byte of the log on, at most so many: standard output is nothing but these bytes.
    [ -f "$dir/log" ] && tail -c "+$(($3 + 1))" "$dir/log" | head -c "$4"
    ;;
signal)
    case $3 in TERM | INT | KILL) ;; *) echo "error=signal"; exit 64 ;; esac
    pids=$(tree)
    # shellcheck disable=SC2086
    [ -n "$pids" ] && kill -s "$3" $pids 2>/dev/null
    echo "signalled=$(echo $pids | wc -w)"
    ;;
nodes)
    # Standard input: a program of ours for Python. Machines that have it only beside the system's are asked there.
    python=
    for each in python3 /opt/conda/bin/python3 /usr/local/bin/python3 "$HOME/miniconda3/bin/python3" /venv/main/bin/python3; do
        command -v "$each" >/dev/null 2>&1 && { python=$each; break; }
    done
    [ -n "$python" ] || { echo "python=none"; exit 0; }
    shift 2
    exec "$python" - "$@"
    ;;
memory)
    # What belongs to its processes alone and is in no file, swapped out or not: that is what a leak leaks.
    for pid in $(tree); do cat "/proc/$pid/status" 2>/dev/null; done |
        awk '/^(RssAnon|VmSwap):/ { kib += $2; seen = 1 } END { if (seen) printf "memory=%.0f\n", kib * 1024 }'
    echo "looked=1"
    ;;
forget)
    is_alive && { echo "error=alive"; exit 67; }
    rm -rf "$dir" && echo "forgotten=1"
    ;;
*)
    echo "error=act"
    exit 64
    ;;
esac
