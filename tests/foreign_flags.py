"""Flags of the tools that people come from, as their --help and sources have them: {tool: (verb of ours, flags)}. A flag that takes
a value has one behind "=". What the tools share with ours stands here, too."""

OPENAI_WHISPER = """
--model=tiny --model_dir=d --device=cpu --output_dir=d --output_format=srt --verbose=False --task=translate --language=en --temperature=0
--best_of=5 --beam_size=5 --patience=1 --length_penalty=1 --suppress_tokens=-1 --initial_prompt=x --carry_initial_prompt=True
--condition_on_previous_text=True --fp16=True --temperature_increment_on_fallback=0.2 --compression_ratio_threshold=2.4
--logprob_threshold=-1 --no_speech_threshold=0.6 --word_timestamps=True --prepend_punctuations=. --append_punctuations=.
--highlight_words=True --max_line_width=20 --max_line_count=2 --max_words_per_line=3 --threads=2 --clip_timestamps=0,1
--hallucination_silence_threshold=2 -m=tiny -o=d -f=srt
"""

# whisper-ctranslate2, and what faster-whisper's transcribe() takes besides.
FASTER_WHISPER = """
--model=tiny --model_directory=d --model_dir=d --cache_directory=d --local_files_only=False --device=cpu --device_index=0 --compute_type=int8
--threads=2 --cpu_threads=2 --output_dir=d --output_format=srt --pretty_json=True --print_colors=True --verbose=True --vad_filter=True
--vad_onset=0.5 --vad_threshold=0.5 --vad_min_speech_duration_ms=1 --vad_max_speech_duration_s=1 --vad_min_silence_duration_ms=1
--vad_speech_pad_ms=1 --batched=True --batch_size=8 --hf_token=x --speaker_name=x --speaker_num=2 --live_transcribe=True
--live_volume_threshold=0.2 --live_input_device=1 --live_input_device_sample_rate=16000 --task=transcribe --language=en --temperature=0
--best_of=5 --beam_size=5 --patience=1 --length_penalty=1 --repetition_penalty=1.1 --no_repeat_ngram_size=3 --suppress_blank=True
--suppress_tokens=-1 --initial_prompt=x --prefix=x --condition_on_previous_text=True --prompt_reset_on_temperature=0.5
--temperature_increment_on_fallback=0.2 --compression_ratio_threshold=2.4 --logprob_threshold=-1 --no_speech_threshold=0.6
--word_timestamps=True --prepend_punctuations=. --append_punctuations=. --highlight_words=True --max_line_width=20 --max_line_count=2
--max_words_per_line=3 --hallucination_silence_threshold=2 --clip_timestamps=0,1 --hotwords=x --multilingual=True --chunk_length=30
--max_new_tokens=9 --max_initial_timestamp=1 --without_timestamps=True --log_progress=True --language_detection_threshold=0.5
--language_detection_segments=2 --num_workers=2
"""

# whisper-cli.
WHISPER_CPP = """
-t=2 --threads=2 -p=1 --processors=1 -ot=1 --offset-t=1 -on=1 --offset-n=1 -d=1 --duration=1 -mc=0 --max-context=0 -ml=20 --max-len=20
-sow --split-on-word -bo=5 --best-of=5 -bs=5 --beam-size=5 -ac=0 --audio-ctx=0 -wt=0.01 --word-thold=0.01 -et=2.4 --entropy-thold=2.4
-lpt=-1 --logprob-thold=-1 -nth=0.6 --no-speech-thold=0.6 -tp=0 --temperature=0 -tpi=0.2 --temperature-inc=0.2 -debug --debug-mode -tr
--translate -di --diarize -tdrz --tinydiarize -nf --no-fallback -otxt --output-txt -ovtt --output-vtt -osrt --output-srt -olrc --output-lrc
-owts --output-words -fp=x --font-path=x -ocsv --output-csv -oj --output-json -ojf --output-json-full -of=x --output-file=x -np --no-prints
-ps --print-special -pc --print-colors --print-confidence -pp --print-progress -nt --no-timestamps -l=en --language=en -dl
--detect-language --prompt=x --carry-initial-prompt -m=tiny --model=tiny -f=a.wav --file=a.wav -oved=CPU --ov-e-device=CPU -dtw=x --dtw=x
-ls --log-score -ng --no-gpu -fa --flash-attn -nfa --no-flash-attn -sns --suppress-nst --suppress-regex=x --grammar=x --grammar-rule=x
--grammar-penalty=1 -dev=0 --device=0 --vad -vm=x --vad-model=x -vt=0.5 --vad-threshold=0.5 -vspd=1 --vad-min-speech-duration-ms=1 -vsd=1
--vad-min-silence-duration-ms=1 -vmsd=1 --vad-max-speech-duration-s=1 -vp=1 --vad-speech-pad-ms=1 -vo=0.1 --vad-samples-overlap=0.1
"""

# The translator of CTranslate2's sources, with options of its older versions.
CTRANSLATE2 = """
--model=d --compute_type=int8 --cuda_compute_type=int8 --cpu_compute_type=int8 --device=cpu --device_index=0 --inter_threads=1
--intra_threads=2 --cpu_core_offset=0 --max_queued_batches=0 --log_throughput --log_profiling --seed=1 --task=translate --src=a.txt --tgt=b.txt
--out=c.txt --batch_size=8 --read_batch_size=8 --batch_type=tokens --max_batch_size=8 --use_vmap --beam_size=2 --patience=1
--sampling_topk=1 --sampling_topp=1 --sampling_temp=1 --sampling_temperature=1 --n_best=1 --num_hypotheses=1 --with_score --length_penalty=1
--coverage_penalty=0 --repetition_penalty=1 --no_repeat_ngram_size=2 --disable_unk --suppress_sequences=x --end_token=x
--prefix_bias_beta=0.5 --max_decoding_length=9 --min_decoding_length=1 --max_input_length=1024 --replace_unknowns
"""

# `vllm serve` and EngineArgs, from 0.6 on.
VLLM = """
--model=d --host=localhost --port=8000 --uds=x --api-key=x --served-model-name=x --chat-template=x --chat-template-content-format=auto
--trust-request-chat-template --default-chat-template-kwargs={} --response-role=assistant --return-tokens-as-token-ids --enable-auto-tool-choice
--exclude-tools-when-tool-choice-none --tool-call-parser=x --tool-parser-plugin=x --tool-server=x --log-config-file=x --max-log-len=9
--enable-prompt-tokens-details --enable-server-load-tracking --enable-force-include-usage --enable-tokenizer-info-endpoint
--enable-log-outputs --enable-log-deltas --log-error-stack --tokens-only --fingerprint-mode=hash --fingerprint-value=x
--enable-per-request-metrics --uvicorn-log-level=info --disable-uvicorn-access-log --disable-access-log-for-endpoints=x --allow-credentials
--allowed-origins=[] --allowed-methods=[] --allowed-headers=[] --ssl-keyfile=x --ssl-certfile=x --ssl-ca-certs=x --enable-ssl-refresh
--ssl-cert-reqs=0 --ssl-ciphers=x --root-path=/x --middleware=x --enable-request-id-headers --disable-fastapi-docs
--enable-offline-docs --h11-max-incomplete-event-size=65536 --h11-max-header-count=90 --disable-frontend-multiprocessing --headless
--api-server-count=2 -asc=2 --config=x --enable-reasoning --reasoning-parser=x --reasoning-parser-plugin=x --prompt-adapters=x
--lora-modules=x --shutdown-timeout=3
--runner=auto --convert=auto --task=auto --tokenizer=x --tokenizer-mode=auto --trust-remote-code --dtype=auto --seed=1 --hf-config-path=x
--allowed-local-media-path=/tmp --allowed-media-domains=x --revision=main --code-revision=main --rope-scaling={} --rope-theta=1
--tokenizer-revision=main --max-model-len=100 --quantization=awq --enforce-eager --max-seq-len-to-capture=9 --max-logprobs=9
--logprobs-mode=x --disable-sliding-window --disable-cascade-attn --skip-tokenizer-init --enable-prompt-embeds --config-format=auto
--hf-token=x --hf-overrides={} --pooler-config={} --override-pooler-config={} --logits-processor-pattern=x --generation-config=auto
--override-generation-config={} --enable-sleep-mode --model-impl=auto --override-attention-dtype=x --logits-processors=x
--io-processor-plugin=x --disable-async-output-proc --use-async-output-proc --intial-incremental-detokenization-offset=5
--load-format=auto --download-dir=d --safetensors-load-strategy=lazy --model-loader-extra-config={} --ignore-patterns=x --use-tqdm-on-load
--pt-load-map-location=cpu --guided-decoding-backend=x --guided-decoding-disable-fallback --guided-decoding-disable-any-whitespace
--guided-decoding-disable-additional-properties --structured-outputs-config={}
--distributed-executor-backend=mp --pipeline-parallel-size=1 -pp=1 --tensor-parallel-size=1 -tp=1 --decode-context-parallel-size=1 -dcp=1
--prefill-context-parallel-size=1 -pcp=1 --data-parallel-size=1 -dp=1 --data-parallel-rank=0 -dpn=0 --data-parallel-start-rank=0 -dpr=0
--data-parallel-size-local=1 -dpl=1 --data-parallel-address=x -dpa=x --data-parallel-rpc-port=1 -dpp=1 --data-parallel-backend=mp -dpb=mp
--data-parallel-hybrid-lb -dph --data-parallel-external-lb -dpe --data-parallel-supervisor-port=1 --enable-expert-parallel
--all2all-backend=x --enable-dbo --ubatch-size=1 --dbo-decode-token-threshold=1 --dbo-prefill-token-threshold=1 --enable-eplb
--eplb-config={} --num-redundant-experts=1 --eplb-window-size=1 --eplb-step-interval=1 --eplb-log-balancedness
--expert-placement-strategy=x --max-parallel-loading-workers=1 --ray-workers-use-nsight --disable-custom-all-reduce --worker-cls=x
--worker-extension-cls=x --enable-multimodal-encoder-data-parallel --nnodes=1 --node-rank=0 --master-addr=x --master-port=1
--dcp-kv-cache-interleave-size=1 --cp-kv-cache-interleave-size=1 --enable-elastic-ep --disable-nccl-for-dp-synchronization
--block-size=16 --gpu-memory-utilization=0.9 --kv-cache-memory-bytes=1000000 --swap-space=4 --kv-cache-dtype=auto
--num-gpu-blocks-override=9 --enable-prefix-caching --no-enable-prefix-caching --prefix-caching-hash-algo=x --cpu-offload-gb=0
--calculate-kv-scales --kv-sharing-fast-prefill --mamba-cache-dtype=x --mamba-ssm-cache-dtype=x --mamba-block-size=1
--mamba-cache-mode=x --kv-offloading-size=1 --kv-offloading-backend=x --use-v2-block-manager
--limit-mm-per-prompt={} --enable-mm-embeds --media-io-kwargs={} --mm-processor-kwargs={} --mm-processor-cache-gb=1
--disable-mm-preprocessor-cache --mm-processor-cache-type=x --mm-shm-cache-max-object-size-mb=1 --mm-encoder-only --mm-encoder-tp-mode=x
--mm-encoder-attn-backend=x --interleave-mm-strings --skip-mm-profiling --video-pruning-rate=0 --language-model-only
--enable-lora --enable-lora-bias --max-loras=1 --max-lora-rank=1 --lora-extra-vocab-size=1 --lora-dtype=auto --max-cpu-loras=1
--fully-sharded-loras --default-mm-loras={} --long-lora-scaling-factors=x --enable-tower-connector-lora --enable-prompt-adapter
--max-prompt-adapters=1 --max-prompt-adapter-token=1 --qlora-adapter-name-or-path=x
--show-hidden-metrics-for-version=x --otlp-traces-endpoint=x --collect-detailed-traces=all --kv-cache-metrics --kv-cache-metrics-sample=1
--cudagraph-metrics --enable-layerwise-nvtx-tracing --enable-mfu-metrics --enable-logging-iteration-details
--max-num-batched-tokens=100 --max-num-seqs=9 --max-num-partial-prefills=1 --max-long-partial-prefills=1 --long-prefill-token-threshold=1
--num-lookahead-slots=1 --scheduler-delay-factor=0 --preemption-mode=swap --num-scheduler-steps=1 --multi-step-stream-outputs
--scheduling-policy=fcfs --enable-chunked-prefill --no-enable-chunked-prefill --disable-chunked-mm-input --scheduler-cls=x
--disable-hybrid-kv-cache-manager --async-scheduling --no-async-scheduling --stream-interval=1
--speculative-config={} --kv-transfer-config={} --kv-events-config={} --ec-transfer-config={} --compilation-config={} -cc={} -O=3 -O3
--optimization-level=3 --additional-config={} --cuda-graph-sizes=1 --cudagraph-capture-sizes=1 --max-cudagraph-capture-size=1
--profiler-config={} --attention-backend=FLASH_ATTN --attention-config={} --kernel-config={} --moe-backend=x --performance-mode=x
--disable-log-stats --aggregate-engine-logging --enable-log-requests --no-enable-log-requests --disable-log-requests --device=cpu
--override-neuron-config={} --fail-on-environ-validation --tokenizer-pool-size=1 --tokenizer-pool-type=ray --tokenizer-pool-extra-config={}
--speculative-model=x --num-speculative-tokens=4 --speculative-model-quantization=x --speculative-draft-tensor-parallel-size=1
--speculative-disable-mqa-scorer --speculative-max-model-len=9 --speculative-disable-by-batch-size=9 --ngram-prompt-lookup-max=4
--ngram-prompt-lookup-min=1 --spec-decoding-acceptance-method=x --typical-acceptance-sampler-posterior-threshold=1
--typical-acceptance-sampler-posterior-alpha=1 --disable-logprobs-during-spec-decoding --no-trust-remote-code --no-enforce-eager
"""

FLAGS = {"openai-whisper": ("transcribe", OPENAI_WHISPER), "faster-whisper": ("transcribe", FASTER_WHISPER), "whisper.cpp": ("transcribe", WHISPER_CPP),
         "CTranslate2": ("translate", CTRANSLATE2), "vLLM": ("serve", VLLM)}
