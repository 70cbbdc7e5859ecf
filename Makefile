# What a developer types. CI runs `make check` through .ci/run.

.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile everything
	go build ./...

.PHONY: install
install: ## install refrain, and refrain-temporal for runs on a Temporal cluster
	go install ./cmd/refrain
	go install -C temporal ./cmd/refrain-temporal

.PHONY: test
test: ## run the tests with the race detector, in random order
	go test ./... -race -shuffle=on

.PHONY: check
check: ## everything that a commit must pass, the same as CI
	./.ci/check

.PHONY: long
long: ## run the tests that draw their cases with many of them, as CI does
	./.ci/long

.PHONY: fuzz
fuzz: ## run every fuzz test; FUZZTIME=30s for longer
	./.ci/fuzz

.PHONY: temporal
temporal: ## check and test package temporal, a module of its own, against a real server
	./.ci/temporal

.PHONY: clis
clis: ## test steps that are coding agents with the real programs, which npm installs
	REFRAIN_CLIS=$$(./.ci/clis all) go test ./agent/taskagent ./command -run RealCodingAgent -count 1 -v

.PHONY: suites
suites: ## hold schema, examples, OpenAPI, metrics, expressions and both sides of MCP against tools of others, fetched by npm and apt-get
	./.ci/suites

.PHONY: soak
soak: ## start, kill, pause, fork and move runs at random; SOAK=15m for longer
	./.ci/soak

.PHONY: release-snapshot
release-snapshot: ## build binaries, packages and SBOMs of all platforms into dist/, and publish nothing
	./.ci/release

.PHONY: bench
bench: ## run the benchmarks, which are a module of their own
	cd bench && go test -run '^$$' -bench . -benchmem

.PHONY: bench-cost
bench-cost: ## print what the input of loops costs, ours and of peers, with providers that keep prompts by the documented rules
	go test ./agent/llmagent -run 'TestCostOfLoops|TestSlowIterations|TestResumedRunSendsTheSame' -v -count 1
	cd bench && go test -run 'TestCostAgainstPeers|TestCostOfContext' -v -count 1

.PHONY: gates
gates: ## measure what users do against its goals and floors; ONLY=resume for one row
	cd bench && go test -run 'TestGates/$(ONLY)' -v -gates -count 1 -timeout 30m

.PHONY: bench-server
bench-server: ## measure the server and its page under load; ONLY=long for one part
	cd bench && go test -run 'TestServer/$(ONLY)' -v -server -count 1 -timeout 30m
	go test ./internal/web/page -run TestALongRunIsDrawnInPart -v -paint -count 1

.PHONY: bench-stop
bench-stop: ## measure when loops stop and what they hand back under noise, against targets and the rules of others
	cd bench && go run ./stop && go run ./stop -regret -runs 300 && go run ./stop -pairs -runs 300 && go run ./stop -legs

.PHONY: bench-temporal
bench-temporal: ## measure runs on a Temporal cluster with PostgreSQL; SERVER=path of a server that was built before
	cd temporal && REFRAIN_TEMPORAL_SERVER=$(abspath $(SERVER)) go test -run 'TestMeasure' -measure -count 1 -timeout 30m .

.PHONY: notices
notices: ## print the licenses of all that refrain is built from, to hand on beside it
	@./.ci/notices ./cmd/refrain

.PHONY: pictures
pictures: ## make the pictures in the README again
	REFRAIN_PICTURES=$(CURDIR)/doc go test ./internal/web/page -run Pictures -count 1
	go test ./command/internal/tui -run MovingPicture -update -count 1

.PHONY: fmt
fmt: ## format, and apply go fix
	gofmt -w .
	go fix ./...

.PHONY: tidy
tidy: ## bring go.mod and go.sum up to date, those of the modules below too
	go mod tidy
	cd bench && go mod tidy
	cd temporal && go mod tidy
	cd deploy && go mod tidy
