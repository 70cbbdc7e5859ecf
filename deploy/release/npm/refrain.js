#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Starts the program of this platform, which npm has installed beside this package.
'use strict';
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `@refrain-dev/refrain-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/refrain${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  console.error(`refrain: the package ${name} is not installed. If there is one for your platform, install without --omit=optional; else build from source: go install github.com/refrain-dev/refrain/cmd/refrain@latest`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// The terminal sends Ctrl-C to the child too; what is sent to this process alone is passed on.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => child.kill(signal));
child.on('error', (err) => {
  console.error(`refrain: ${err.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
