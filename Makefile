# slipstream: `make run` on a fresh Debian 12 answers with minnow; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build current run serve test check tidy sanitize bench bench-gpu cuda cuda-check web browser fuzz format clean help deps test-deps

BINARY := build/slipstream

build: deps ## build the release binary, build/slipstream
	@[ -f build/release/build.ninja ] || cmake --preset release -DSLIP_TESTS=OFF >/dev/null
	@cmake --build --preset release --target slipstream
	@ln -sfn release/apps/slipstream/slipstream $(BINARY)

# The build that $(BINARY) leads to, made anew if sources changed: after `make cuda` that one.
current:
	@$(MAKE) --no-print-directory $(if $(findstring cuda/,$(shell readlink $(BINARY))),cuda,build)

run: current ## chat with minnow; PROMPT="..." for one answer, MODEL=DIR for another model
ifdef PROMPT
	@$(BINARY) run $(if $(MODEL),--model "$(MODEL)") --stats --prompt "$$PROMPT"
else
	@$(BINARY) run $(if $(MODEL),--model "$(MODEL)")
endif
export PROMPT

serve: current ## the server and its chat page, http://127.0.0.1:8080; MODEL=DIR for another model
	@$(BINARY) serve $(if $(MODEL),"$(MODEL)")

ifdef R
test: test-deps
	@cmake --preset release -DSLIP_TESTS=ON >/dev/null
	@cmake --build --preset release
	@ctest --preset release -j2 -R '$(R)'
else
test: test-deps build check sanitize ## build and run all tests; R=kernels for those with such a name
	@cmake --preset release -DSLIP_TESTS=ON >/dev/null
	@cmake --build --preset release
	@ctest --preset release -j2
endif

check: test-deps ## formatting, include edges, lengths of files
	@tools/check-format.sh
	@tools/check-includes.sh
	@tools/check-sizes.sh

tidy: deps ## clang-tidy over src/ and apps/; R='text|hub' for a part
	@tools/check-tidy.sh $(if $(R),'$(R)')

sanitize: test-deps ## parsers under address and undefined-behaviour, threads under thread sanitizer
	@[ -f build/asan-ubsan/build.ninja ] || cmake --preset asan-ubsan >/dev/null
	@cmake --build --preset asan-ubsan --target sanitized_tests
	@ctest --preset asan-ubsan -j2 -R '^(base|hub|checkpoint|text|quant|grammar|server|fuzz)\.' -E 'Speed'
	@[ -f build/tsan/build.ninja ] || cmake --preset tsan >/dev/null
	@cmake --build --preset tsan --target threaded_tests
	@ctest --preset tsan -j2 -R '^(base\.ThreadPool|hub\.Pull|engine\.(Session|ServiceThreads)|models\..*(Thread|Ragged)|server\.(Http|Router|Metrics|Histogram|Operations))' -E 'Speed|minnow_cpu_(portable|avx512|amx)'

bench: current ## measure minnow and a 35B-shaped model; writes bench/results/
	@bench/run.sh

bench-gpu: cuda ## measure the published shapes on the GPU; writes bench/results/
	@bench/gpu.sh

web: ## build the chat page, web/dist/index.html (needs Node.js)
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent build

browser: current ## the chat page in a real browser (needs Node.js and Chromium)
	@tests/clients/browser.sh $(BINARY)

fuzz: ## build the libFuzzer programs with clang
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz --target fuzzers

cuda: deps ## the binary with the CUDA backend, build/slipstream (needs nvcc)
	@[ -f build/cuda/build.ninja ] || cmake --preset cuda -DSLIP_TESTS=OFF
	@cmake --build --preset cuda --target slipstream
	@ln -sfn cuda/apps/slipstream/slipstream $(BINARY)

cuda-check: test-deps ## compile all CUDA code for all GPUs and look for spills in hot kernels
	@cmake --preset cuda -DSLIP_TESTS=ON >/dev/null
	@cmake --build --preset cuda --target slip_kernels_cuda --clean-first > build/cuda/kernels.log || { tail -50 build/cuda/kernels.log; exit 1; }
	@tools/check-spills.sh build/cuda/kernels.log

format: ## apply .clang-format
	@tools/check-format.sh --fix

clean: ## remove everything that was built
	rm -rf build

deps:
	@tools/install-deps.sh build
test-deps:
	@tools/install-deps.sh test

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12
