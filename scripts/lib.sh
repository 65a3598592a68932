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
