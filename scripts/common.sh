# Shared by the scripts: progress lines, steps that say when they fail, packages of the system.

say() {
    printf '\n==> %s\n' "$*"
}

# step NAME COMMAND…: runs the command, says which step failed, and ends the script then.
step() {
    local name=$1
    shift
    say "$name"
    if ! "$@"; then
        printf '\nFAILED: %s\n' "$name" >&2
        exit 1
    fi
}

# install PACKAGE…: Debian packages, by sudo where one is not root.
install() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "these packages are needed and only root can install them: $*" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    if ! command -v apt-get >/dev/null; then
        echo "no apt-get here; please install what Debian calls: $*" >&2
        return 1
    fi
    "${as_root[@]}" apt-get update -qq || return
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# Whether a Postgres server could be started: some folder holds all its programs.
has_postgres() {
    local folder
    for folder in /usr/lib/postgresql/*/bin ${PATH//:/ }; do
        if [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && [ -x "$folder/postgres" ]; then
            return 0
        fi
    done
    return 1
}

# as_root COMMAND…: by sudo where one is not root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "only root can do this: $*" >&2
        return 1
    fi
}

# Prometheus' own linter, out of Debian's package. The package itself is not installed: it would start a server.
install_promtool() {
    local folder
    folder=$(mktemp -d) || return
    as_root apt-get update -qq &&
        (cd "$folder" && apt-get download -qq prometheus) &&
        dpkg-deb --fsys-tarfile "$folder"/prometheus_*.deb | tar -x -C "$folder" ./usr/bin/promtool &&
        as_root cp "$folder/usr/bin/promtool" /usr/local/bin/promtool
    local result=$?
    rm -rf "$folder"
    if [ "$result" -ne 0 ]; then
        echo "promtool is needed, from Debian's package prometheus or from Prometheus' own downloads" >&2
    fi
    return "$result"
}
