// Flags of `vllm serve` and of vLLM's engine (its EngineArgs), those of older versions, too.
#include "apps/foreign_rows.h"

namespace transept {
namespace {

constexpr std::string_view kVllm = "vLLM";
constexpr std::string_view kNoSetting = "the engine has no such setting, and answers do not depend on it";
// Verbs that have the flag themselves: its other values are looked at there.
constexpr std::string_view kEngine = "serve generate translate transcribe inspect bench dump";
constexpr std::string_view kNoAdapters = "adapters are not applied: merge them into the model";
constexpr std::string_view kNoStructure = "structured output is not supported";
constexpr std::string_view kNoTools = "neither tool calls nor reasoning are parsed";
constexpr std::string_view kLogged = "--log-level and --log-prompts say what is logged";
constexpr std::string_view kTls = "a proxy adds TLS (docs/deployment.md)";

// A value of a flag that has a row for every value comes before that row.
constexpr ForeignFlag kRows[] = {
    stands(kVllm, "--no-enable-prefix-caching", "", "", "--enable-prefix-caching=off"),
    nothing(kVllm, "--trust-remote-code", "[BOOL]", "no code from a model's folder is run"),
    nothing(kVllm, "--enforce-eager", "[BOOL]", "there are no graphs to capture"),
    refused(kVllm, "--gpu-memory-utilization", "SHARE", "--kv-cache-memory SIZE is the memory of the KV cache"),
    stands(kVllm, "--kv-cache-memory-bytes", "N", "", "--kv-cache-memory={}"),
    refused(kVllm, "--kv-cache-dtype", "TYPE", "--kv-cache-dtype int8 is the type of 8 bits", "", "fp8*"),
    stands(kVllm, "--swap-space", "N", "[0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9][0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9][0-9][0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9].[0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9].[0-9][0-9]", "--swap-space={}GiB"),
    stands(kVllm, "--swap-space", "N", "[0-9][0-9].[0-9]", "--swap-space={}GiB"),
    refused(kVllm, "--tokenizer", "NAME", "the tokenizer is read from the folder of MODEL"),
    stands(kVllm, "--tokenizer-mode", "MODE", "auto", ""),
    stands(kVllm, "--tokenizer-mode", "MODE", "slow", ""),
    stands(kVllm, "--load-format", "FORMAT", "auto", ""),
    stands(kVllm, "--load-format", "FORMAT", "safetensors", ""),
    stands(kVllm, "--data-parallel-size -dp", "N", "", "--replicas={}", "serve"),
    stands(kVllm, "-tp", "N", "", "--tensor-parallel-size={}", "serve generate"),
    stands(kVllm, "-pp", "N", "", "--pipeline-parallel-size={}", "serve generate"),
    nothing(kVllm, "--disable-log-requests --disable-log-stats --no-enable-log-requests", "[BOOL]", kLogged, "serve"),
    refused(kVllm, "--allowed-origins", "JSON", "give --cors-origin URL, once for each", "serve"),
    refused(kVllm, "--ssl-keyfile --ssl-certfile", "FILE", kTls, "serve"),
    nothing(kVllm, "--task --runner", "NAME", "MODEL says what it does", "serve generate"),
    nothing(kVllm, "--max-seq-len-to-capture", "N", "there are no graphs to capture"),
    nothing(kVllm, "--disable-custom-all-reduce", "[BOOL]", "there is one rank"),

    stands(kVllm, "--no-trust-remote-code --no-enforce-eager", "", "", ""),
    nothing(kVllm, "--no-enable-chunked-prefill", "", "decoder prompts always go in parts"),
    nothing(kVllm, "--attention-backend", "NAME", "auto takes the kernels of the processor", kEngine, "*_*"),
    nothing(kVllm, "--attention-backend", "NAME", "auto takes the kernels of the processor", kEngine, "flashinfer"),
    nothing(kVllm, "--attention-backend", "NAME", "auto takes the kernels of the processor", kEngine, "xformers"),

    // What speed and memory are on a GPU, and how many there are.
    nothing(kVllm,
            "--disable-cascade-attn --async-scheduling --no-async-scheduling --disable-async-output-proc "
            "--use-async-output-proc --enable-dbo --disable-hybrid-kv-cache-manager --kv-sharing-fast-prefill "
            "--use-v2-block-manager --multi-step-stream-outputs --disable-chunked-mm-input --calculate-kv-scales "
            "--skip-mm-profiling --disable-mm-preprocessor-cache --use-tqdm-on-load --ray-workers-use-nsight "
            "--enable-expert-parallel --enable-eplb --enable-multimodal-encoder-data-parallel "
            "--disable-nccl-for-dp-synchronization --enable-elastic-ep --cudagraph-metrics "
            "--enable-layerwise-nvtx-tracing --enable-mfu-metrics --kv-cache-metrics "
            "--enable-logging-iteration-details --fail-on-environ-validation --disable-sliding-window "
            "--eplb-log-balancedness --disable-frontend-multiprocessing --enable-flash-late-interaction",
            "[BOOL]", kNoSetting),
    nothing(kVllm,
            "--max-parallel-loading-workers --cuda-graph-sizes --cudagraph-capture-sizes "
            "--max-cudagraph-capture-size --compilation-config -O -cc --optimization-level --prefix-caching-hash-algo "
            "--num-scheduler-steps --num-lookahead-slots --scheduler-delay-factor --max-num-partial-prefills "
            "--max-long-partial-prefills --long-prefill-token-threshold --safetensors-load-strategy "
            "--pt-load-map-location --model-loader-extra-config --mm-processor-cache-gb --mm-processor-cache-type "
            "--mm-shm-cache-max-object-size-mb --mm-encoder-tp-mode --mm-encoder-attn-backend --mamba-cache-dtype "
            "--mamba-ssm-cache-dtype --mamba-block-size --mamba-cache-mode --all2all-backend --eplb-config "
            "--num-redundant-experts --eplb-window-size --eplb-step-interval --expert-placement-strategy --ubatch-size "
            "--dbo-decode-token-threshold --dbo-prefill-token-threshold --tokenizer-pool-size --tokenizer-pool-type "
            "--tokenizer-pool-extra-config --override-neuron-config --override-attention-dtype --additional-config "
            "--kernel-config --attention-config --moe-backend --performance-mode --kv-cache-metrics-sample "
            "--profiler-config --show-hidden-metrics-for-version --worker-cls --worker-extension-cls "
            "--distributed-executor-backend --model-impl --ignore-patterns "
            "--intial-incremental-detokenization-offset",
            "VALUE", kNoSetting),
    nothing(kVllm, "-O0 -O1 -O2 -O3", "", kNoSetting),
    nothing(kVllm, "--max-logprobs", "N", kNoSetting, "generate translate"),
    stands(kVllm, "--cpu-offload-gb", "N", "0", ""),
    nothing(kVllm, "--cpu-offload-gb", "N", "weights are in the processor's memory"),
    nothing(kVllm, "--code-revision", "REV", "no code from a model's folder is run"),
    refused(kVllm, "--num-gpu-blocks-override", "N", "--kv-cache-memory SIZE is the memory of the KV cache"),
    refused(kVllm, "--kv-offloading-size --kv-offloading-backend", "VALUE",
            "--swap-space SIZE is the memory of preempted requests"),
    stands(kVllm, "--scheduling-policy", "NAME", "fcfs", ""),
    refused(kVllm, "--scheduling-policy", "NAME", "requests begin in the order in which they come", "", "priority"),
    nothing(kVllm, "--stream-interval", "N", "each token is sent as it comes", "serve"),
    refused(kVllm, "--scheduler-cls --logits-processors --logits-processor-pattern --io-processor-plugin", "NAME",
            "no code of users runs in the engine"),
    stands(kVllm,
           "--decode-context-parallel-size -dcp --prefill-context-parallel-size -pcp --data-parallel-size-local -dpl",
           "N", "1", ""),
    refused(kVllm,
            "--decode-context-parallel-size -dcp --prefill-context-parallel-size -pcp --dcp-kv-cache-interleave-size "
            "--cp-kv-cache-interleave-size",
            "VALUE", "a context is not divided among processes; --tensor-parallel-size N divides the model"),
    refused(kVllm,
            "--data-parallel-rank -dpn --data-parallel-start-rank -dpr --data-parallel-size-local -dpl "
            "--data-parallel-address -dpa --data-parallel-rpc-port -dpp --data-parallel-backend -dpb "
            "--data-parallel-supervisor-port --dp-supervisor-probe-interval-s --dp-supervisor-probe-timeout-s "
            "--dp-supervisor-probe-failure-threshold",
            "VALUE", "--replicas N are engines of one process; docs/scaling.md says how to use more machines", "serve"),
    refused(kVllm, "--data-parallel-hybrid-lb -dph --data-parallel-external-lb -dpe --headless", "",
            "--replicas N are engines of one process; docs/scaling.md says how to use more machines", "serve"),
    refused(kVllm, "--kv-transfer-config --ec-transfer-config --kv-events-config --weight-transfer-config", "JSON",
            "--epd puts encoders and decoders into processes of their own"),
    refused(kVllm, "--enable-sleep-mode", "", "end the process instead: it is back within seconds"),

    // What a model is.
    refused(kVllm, "--tokenizer-revision", "REV", "--revision is that of the tokenizer, too"),
    refused(kVllm, "--hf-config-path", "NAME", "config.json is read from the folder of MODEL"),
    refused(kVllm, "--hf-overrides --rope-scaling --rope-theta", "JSON", "change config.json in a copy of the folder"),
    stands(kVllm, "--config-format", "FORMAT", "auto", ""),
    stands(kVllm, "--config-format", "FORMAT", "hf", ""),
    stands(kVllm, "--generation-config", "NAME", "auto", ""),
    refused(kVllm, "--generation-config", "NAME",
            "generation_config.json is read from the folder of MODEL; a request's fields win over it"),
    refused(kVllm, "--override-generation-config", "JSON",
            "a request's fields win; generate and translate have them as flags"),
    refused(kVllm, "--hf-token", "TOKEN", "set HF_TOKEN, which no list of processes shows",
            "serve generate translate tokenize detokenize inspect bench dump pack"),
    refused(kVllm, "--skip-tokenizer-init", "[BOOL]", "prompts may be token ids anyway, and answers have token_ids"),
    refused(kVllm, "--enable-prompt-embeds --enable-mm-embeds", "[BOOL]", "prompts are texts, ids and media"),
    stands(kVllm, "--convert", "NAME", "auto", "", "serve generate"),
    stands(kVllm, "--convert", "NAME", "none", "", "serve generate"),
    refused(kVllm, "--convert --pooler-config --override-pooler-config", "VALUE", "models are not made to embed texts",
            "serve generate"),
    refused(kVllm, "--logprobs-mode", "NAME", "docs/api.md says what log-probabilities are"),
    refused(kVllm,
            "--max-loras --max-lora-rank --max-cpu-loras --lora-dtype --lora-extra-vocab-size "
            "--long-lora-scaling-factors --default-mm-loras --qlora-adapter-name-or-path",
            "VALUE", kNoAdapters),
    refused(kVllm, "--enable-lora-bias --fully-sharded-loras --enable-tower-connector-lora --enable-prompt-adapter",
            "[BOOL]", kNoAdapters),
    refused(kVllm, "--prompt-adapters --max-prompt-adapters --max-prompt-adapter-token", "VALUE", kNoAdapters),
    refused(kVllm, "--mm-processor-kwargs --media-io-kwargs --video-pruning-rate", "VALUE",
            "--max-image-pixels says how large pictures may be"),
    nothing(kVllm, "--interleave-mm-strings", "[BOOL]", "pictures stay where the chat has them", "serve"),
    refused(kVllm, "--mm-encoder-only --language-model-only", "[BOOL]", "a model runs as a whole; see --epd"),
    refused(kVllm, "--allowed-media-domains", "LIST", "requests carry their media: the server fetches nothing",
            "serve"),
    refused(kVllm, "--guided-decoding-backend --structured-outputs-config", "VALUE", kNoStructure),
    refused(kVllm,
            "--guided-decoding-disable-fallback --guided-decoding-disable-any-whitespace "
            "--guided-decoding-disable-additional-properties",
            "[BOOL]", kNoStructure),
    refused(kVllm,
            "--speculative-model-quantization --speculative-draft-tensor-parallel-size --speculative-max-model-len "
            "--speculative-disable-by-batch-size --ngram-prompt-lookup-max --ngram-prompt-lookup-min "
            "--spec-decoding-acceptance-method --typical-acceptance-sampler-posterior-threshold "
            "--typical-acceptance-sampler-posterior-alpha",
            "VALUE", "--speculative-config JSON has the settings of drafts"),
    refused(kVllm, "--speculative-disable-mqa-scorer --disable-logprobs-during-spec-decoding", "[BOOL]",
            "--speculative-config JSON has the settings of drafts"),

    // The server.
    refused(kVllm, "--reasoning-parser --reasoning-parser-plugin --tool-call-parser --tool-parser-plugin --tool-server",
            "NAME", kNoTools, "serve"),
    refused(kVllm, "--enable-reasoning --enable-auto-tool-choice --exclude-tools-when-tool-choice-none", "[BOOL]",
            kNoTools, "serve"),
    nothing(kVllm, "--chat-template-content-format", "NAME", "the template is given what it reads", "serve"),
    refused(kVllm, "--trust-request-chat-template", "[BOOL]", "--chat-template FILE is the only one", "serve"),
    refused(kVllm, "--default-chat-template-kwargs", "JSON", "write them into the template: --chat-template FILE",
            "serve"),
    stands(kVllm, "--response-role", "NAME", "assistant", "", "serve"),
    refused(kVllm, "--return-tokens-as-token-ids", "[BOOL]", "logprobs name tokens by their texts", "serve"),
    nothing(kVllm, "--uvicorn-log-level --max-log-len --disable-access-log-for-endpoints", "VALUE", kLogged, "serve"),
    nothing(kVllm,
            "--disable-uvicorn-access-log --enable-log-requests --enable-log-deltas --log-error-stack "
            "--aggregate-engine-logging",
            "[BOOL]", kLogged, "serve"),
    refused(kVllm, "--log-config-file", "FILE", "--log-level and --log-format say what is logged, and how", "serve"),
    refused(kVllm, "--enable-log-outputs", "[BOOL]", "answers are never logged; --log-prompts logs requests", "serve"),
    nothing(kVllm,
            "--enable-prompt-tokens-details --enable-server-load-tracking --enable-request-id-headers "
            "--enable-per-request-metrics",
            "[BOOL]", "usage, GET /metrics and X-Request-Id have it anyway", "serve"),
    refused(kVllm, "--enable-force-include-usage", "[BOOL]", "stream_options of a request ask for it", "serve"),
    refused(kVllm, "--enable-tokenizer-info-endpoint --tokens-only", "[BOOL]", "routes are those of docs/server.md",
            "serve"),
    refused(kVllm, "--otlp-traces-endpoint --collect-detailed-traces", "VALUE",
            "no traces are sent; GET /metrics has times", "serve"),
    nothing(kVllm, "--fingerprint-mode --fingerprint-value", "VALUE", "answers have no fingerprint", "serve"),
    refused(kVllm, "--uds", "FILE", "--host and --port say where it listens", "serve"),
    nothing(kVllm, "--allowed-methods --allowed-headers", "JSON", "sites of --cors-origin may use all that the API has",
            "serve"),
    refused(kVllm, "--allow-credentials", "[BOOL]", "a site sends a key of --api-key in a header", "serve"),
    refused(kVllm, "--ssl-ca-certs --ssl-cert-reqs --ssl-ciphers", "VALUE", kTls, "serve"),
    refused(kVllm, "--enable-ssl-refresh", "[BOOL]", kTls, "serve"),
    refused(kVllm, "--root-path", "PATH", "the proxy before the server takes the prefix off", "serve"),
    refused(kVllm, "--middleware", "NAME", "no code of users runs in the server", "serve"),
    nothing(kVllm, "--disable-fastapi-docs --enable-offline-docs", "[BOOL]", "the API has no such pages", "serve"),
    stands(kVllm, "--h11-max-incomplete-event-size", "N", "", "--max-header-size={}", "serve"),
    stands(kVllm, "--h11-max-header-count", "N", "", "--max-headers={}", "serve"),
    nothing(kVllm, "--api-server-count -asc", "N", "--io-threads N move bytes", "serve"),
    refused(kVllm, "--config", "FILE", "each flag has an environment variable: TRANSEPT_PORT=8000", "serve"),
};

}  // namespace

std::span<const ForeignFlag> vllm_flags() { return kRows; }

}  // namespace transept
