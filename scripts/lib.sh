# Sourced by the scripts beside it; the working folder is the repository's.

# need_go says what to do when the one tool is missing that everything else is built with.
need_go() {
  if ! command -v go >/dev/null 2>&1; then
    echo 'step "find Go" failed: the program "go" is not on PATH' >&2
    echo '  what to do: install Go from https://go.dev/dl/ and run this again' >&2
    exit 1
  fi
}

# build_cloud builds the program that does the work; a second build takes a moment.
build_cloud() {
  mkdir -p .local/bin
  if ! go build -o .local/bin/cloud ./localstack/cloud; then
    echo 'step "build localstack/cloud" failed: read the lines above' >&2
    echo '  what to do: with no network, Go cannot fetch the modules of go.mod: check the network and run this again' >&2
    exit 1
  fi
}

# need_postgres installs the PostgreSQL server that tests start by themselves, where there is none: the version of the
# distribution. Its package would make and start a cluster of its own on the usual port; a drop-in tells it not to.
# https://manpages.debian.org/pg_createcluster#FILES
need_postgres() {
  local sudo='' folder=/etc/postgresql-common/createcluster.d
  if compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || compgen -G '/usr/pgsql-*/bin/postgres' >/dev/null ||
    compgen -G '/opt/homebrew/opt/postgresql@*/bin/postgres' >/dev/null || [ -x /usr/bin/postgres ] || command -v postgres >/dev/null 2>&1; then
    echo "there already"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    sudo='sudo -n'
  fi
  if command -v apt-get >/dev/null 2>&1 && $sudo true && $sudo mkdir -p "$folder" &&
    echo 'create_main_cluster = false' | $sudo tee "$folder/almanac-tests.conf" >/dev/null &&
    { $sudo apt-get install -y -qq --no-install-recommends postgresql ||
      { $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends postgresql; }; }; then
    return
  fi
  echo 'step "install PostgreSQL" failed: read the lines above' >&2
  echo '  what to do: install its server (apt-get install postgresql on Debian and Ubuntu, brew install postgresql@17 on macOS) and run this again; it need not be started' >&2
  return 1
}
