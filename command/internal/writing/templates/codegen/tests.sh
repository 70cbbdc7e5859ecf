#!/bin/sh
# Tries the script that it reads, and says what is wrong. Exit code 1: something is.
script=$(mktemp) || exit 2
trap 'rm -f "$script"' EXIT
cat >"$script"
failed=0
try() { # what it reads, what it is to print
	got=$(printf "$1" | sh "$script" 2>&1)
	if [ "$got" != "$2" ]; then
		echo "for $1: got \"$got\", want \"$2\""
		failed=1
	fi
}
try '1\n2\n3\n' 6
try '10\n-4\n' 6
try '' 0
exit $failed
