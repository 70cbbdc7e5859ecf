#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes webui/static/vendor from the packages that package-lock.json pins. It needs Node and the
# npm registry; building and testing Refrain needs neither, as what it makes is committed.
#
#   npm install NAME@VERSION --save-exact    to take a newer one, then:
#   ./vendor.sh
set -euo pipefail
cd "$(dirname "$0")"
out=../static/vendor
axe=../testdata/axe.min.js

npm ci --no-audit --no-fund --ignore-scripts >/dev/null
mkdir -p "$out" ../testdata

# A browser resolves no bare name without an import map, and an inline map would weaken the CSP.
copy() {
	sed -E -e 's|"preact/hooks"|"./hooks.js"|g' -e 's|"preact"|"./preact.js"|g' \
		-e 's|"@preact/signals-core"|"./signals-core.js"|g' -e 's|//# sourceMappingURL=.*||' \
		"node_modules/$1" >"$out/$2"
}
copy preact/dist/preact.mjs preact.js
copy preact/hooks/dist/hooks.mjs hooks.js
copy @preact/signals-core/dist/signals-core.mjs signals-core.js
copy @preact/signals/dist/signals.mjs signals.js
copy htm/dist/htm.mjs htm.js
node_modules/.bin/esbuild codemirror.js --bundle --minify --format=esm --target=es2022 \
	--legal-comments=none --log-level=warning --outfile="$out/codemirror.js"
gzip -9nf "$out/codemirror.js" # it is most of what the command embeds
cp node_modules/axe-core/axe.min.js "$axe"

{
	echo '# Third-party files'
	echo
	echo 'Made by `webui/vendoring/vendor.sh`; nothing here is edited by hand. `axe.min.js`, in testdata, is for the tests alone.'
	echo
	echo '| file | from | licence | SHA-256 |'
	echo '|---|---|---|---|'
	row() { # FILE PACKAGE
		local version licence
		version=$(node -p "require('./node_modules/$2/package.json').version")
		licence=$(node -p "require('./node_modules/$2/package.json').license")
		echo "| $(basename "$1") | $2 $version | $licence | $(sha256sum "$1" | cut -d' ' -f1) |"
	}
	row "$out/preact.js" preact
	row "$out/hooks.js" preact
	row "$out/signals-core.js" @preact/signals-core
	row "$out/signals.js" @preact/signals
	row "$out/htm.js" htm
	row "$out/codemirror.js.gz" @codemirror/view
	row "$axe" axe-core
	echo
	echo 'codemirror.js also holds:'
	echo
	node -e '
		const lock = require("./package-lock.json").packages
		for (const [path, p] of Object.entries(lock))
			if (/node_modules\/(@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)/.test(path))
				console.log("- " + path.replace("node_modules/", "") + " " + p.version + ", " + p.license)'
	echo
	echo '## Licences'
	for p in preact htm @codemirror/view; do
		echo
		echo "### $p"
		echo
		sed 's/^/    /' "node_modules/$p/LICENSE"
	done
} >"$out/VENDOR.md"

rm -rf node_modules
