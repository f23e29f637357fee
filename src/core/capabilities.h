// The table of what this version supports, and what it refuses and why: one row per feature. Removing the `refusal` of
// a row makes it a supported one. startup/features.h decides for which families and attention backends a row holds.
// Constant data: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace transept {

enum class Feature : uint8_t {
  // Prompts
  kEncoderText,
  kEncoderTokens,
  kDecoderText,
  kDecoderTokens,
  kAudio,
  kImage,
  kChat,
  // Decoding
  kGreedy,
  kSampling,
  kSeveralAnswers,
  kBestOf,
  kBeamSearch,
  kDiverseBeamSearch,
  kPenalties,
  kBans,
  kForcedTokens,
  kShortlists,
  kEnds,
  kStructuredOutput,
  // Results
  kLogprobs,
  kPromptLogprobs,
  kScore,
  kAlignments,
  kStreaming,
  // Batching and memory
  kContinuousBatching,
  kPagedSelfKv,
  kPagedCrossKv,
  kBlockSizes,
  kRecompute,
  kSwap,
  kPoison,
  kSharedInputs,
  kCachedInputs,
  kPinnedInputs,
  kPrefixCaching,
  kChunkedPrefill,
  kSpeculation,
  kDraftModel,
  kDraftHeads,
  // Numbers
  kStoredWeights,
  kInt8Weights,
  kInt4Weights,
  kQuantization,
  kFloat32,
  kBFloat16,
  kFloat16,
  kFloat32Kv,
  kBFloat16Kv,
  kFloat16Kv,
  kInt8Kv,
  // Quantised checkpoints
  kCompressedPacked,
  kCompressedIntegers,
  kCompressedFloat8,
  kCompressedOthers,
  kBitsandbytes8,
  kBitsandbytes4,
  kGptq,
  kAwq,
  kFloat8,
  kQuanto8,
  kQuantoOthers,
  kKernelLayouts,
  kPythonTensors,
  kOtherExports,
  kMicroscaling,
  kCodebooks,
  kQuantizedExperts,
  // Models and machines
  kForeignFiles,
  kSlidingWindow,
  kStrictMasks,
  kLora,
  kCpu,
  kVulkan,
  kRecordedSteps,
  kOtherDevices,
  kSeparatedEncoder,
  kTensorParallel,
  kPipelineParallel,
  kRanksAndSeparatedEncoder,
  kRanksAndReplicas,
  kRanksAndSlices,
  kRanksAndDraftModel,
  kRanksOnDevice,
};

struct FeatureRow {
  Feature feature;
  std::string_view group;  // heading in docs/features.md
  std::string_view name;
  // What requests the feature, comma-separated lists. All empty: the feature is always on.
  std::string_view flags = {};   // of the binary: "--num-beams"
  std::string_view fields = {};  // of a request
  std::string_view others = {};  // keys of model files, parts of a prompt: "config.json: sliding_window"
  // A clause that says why no model supports the feature on any backend. "": the conditions below decide.
  std::string_view refusal = {};
  std::string_view modality = {};        // only models that take this modality
  std::optional<DType> kv_dtype = {};    // only backends that store KV in this type
  bool needs_text_encoder = false;       // only models whose encoder reads tokens, not media
  bool needs_cross_attention = false;    // only models whose decoder crosses the encoder's rows
  bool needs_attention_capture = false;  // only backends that return attention probabilities
};

namespace feature_groups {
inline constexpr std::string_view kPrompts = "Prompts", kDecoding = "Decoding", kResults = "Results",
                                  kMemory = "Batching and memory", kNumbers = "Numbers",
                                  kQuantized = "Quantised checkpoints", kModels = "Models and machines";
}  // namespace feature_groups

// clang-format off
inline constexpr FeatureRow kFeatures[] = {
    {.feature = Feature::kEncoderText, .group = feature_groups::kPrompts, .name = "text for the encoder", .fields = "prompt, encoder_prompt", .needs_text_encoder = true},
    {.feature = Feature::kEncoderTokens, .group = feature_groups::kPrompts, .name = "token ids for the encoder", .fields = "prompt, encoder_prompt", .needs_text_encoder = true},
    {.feature = Feature::kDecoderText, .group = feature_groups::kPrompts, .name = "text for the decoder", .fields = "decoder_prompt", .others = "prompt beside multi_modal_data"},
    {.feature = Feature::kDecoderTokens, .group = feature_groups::kPrompts, .name = "token ids for the decoder", .fields = "decoder_prompt", .others = "prompt_token_ids beside multi_modal_data"},
    {.feature = Feature::kAudio, .group = feature_groups::kPrompts, .name = "audio", .others = "multi_modal_data: audio", .modality = "audio"},
    {.feature = Feature::kImage, .group = feature_groups::kPrompts, .name = "images", .others = "multi_modal_data: image", .modality = "image"},
    {.feature = Feature::kChat, .group = feature_groups::kPrompts, .name = "chat completions, with the model's chat template or one turn", .flags = "--chat-template", .others = "POST /v1/chat/completions"},

    {.feature = Feature::kGreedy, .group = feature_groups::kDecoding, .name = "greedy", .fields = "temperature"},
    {.feature = Feature::kSampling, .group = feature_groups::kDecoding, .name = "sampling", .fields = "temperature, top_k, top_p, min_p, seed"},
    {.feature = Feature::kSeveralAnswers, .group = feature_groups::kDecoding, .name = "several answers", .fields = "n, num_return_sequences"},
    {.feature = Feature::kBestOf, .group = feature_groups::kDecoding, .name = "best of more answers", .fields = "best_of"},
    {.feature = Feature::kBeamSearch, .group = feature_groups::kDecoding, .name = "beam search", .fields = "num_beams, use_beam_search, length_penalty, early_stopping"},
    {.feature = Feature::kDiverseBeamSearch, .group = feature_groups::kDecoding, .name = "diverse beam search", .fields = "num_beam_groups, diversity_penalty", .refusal = "diverse beam search is not supported"},
    {.feature = Feature::kPenalties, .group = feature_groups::kDecoding, .name = "penalties", .fields = "repetition_penalty, presence_penalty, frequency_penalty"},
    {.feature = Feature::kBans, .group = feature_groups::kDecoding, .name = "biases and bans", .fields = "logit_bias, bad_words, bad_words_ids, suppress_tokens, begin_suppress_tokens, allowed_token_ids, no_repeat_ngram_size, encoder_no_repeat_ngram_size"},
    {.feature = Feature::kForcedTokens, .group = feature_groups::kDecoding, .name = "forced tokens", .fields = "forced_bos_token_id, forced_eos_token_id"},
    {.feature = Feature::kShortlists, .group = feature_groups::kDecoding, .name = "a lexical shortlist beside a Marian model", .flags = "--shortlist", .others = "lex*.s2t.bin", .needs_text_encoder = true},
    {.feature = Feature::kEnds, .group = feature_groups::kDecoding, .name = "ends", .fields = "max_tokens, min_tokens, stop, stop_token_ids, ignore_eos"},
    {.feature = Feature::kStructuredOutput, .group = feature_groups::kDecoding, .name = "structured output", .fields = "response_format, guided_json, guided_regex, guided_choice, guided_grammar", .refusal = "structured output is not supported"},

    {.feature = Feature::kLogprobs, .group = feature_groups::kResults, .name = "log-probabilities of the answer", .fields = "logprobs"},
    {.feature = Feature::kPromptLogprobs, .group = feature_groups::kResults, .name = "log-probabilities of the decoder prompt", .fields = "prompt_logprobs"},
    {.feature = Feature::kScore, .group = feature_groups::kResults, .name = "scores of given answers", .flags = "--score"},
    {.feature = Feature::kAlignments, .group = feature_groups::kResults, .name = "alignments", .fields = "return_alignments", .needs_cross_attention = true, .needs_attention_capture = true},
    {.feature = Feature::kStreaming, .group = feature_groups::kResults, .name = "streaming", .flags = "--stream", .others = "stream of a body of `transept serve`"},

    {.feature = Feature::kContinuousBatching, .group = feature_groups::kMemory, .name = "continuous batching", .flags = "--max-num-seqs, --max-num-batched-tokens, --max-num-encoder-tokens, --encode-slice"},
    {.feature = Feature::kPagedSelfKv, .group = feature_groups::kMemory, .name = "paged self-attention KV, shared by the answers of a request", .flags = "--kv-cache-memory, --watermark"},
    {.feature = Feature::kPagedCrossKv, .group = feature_groups::kMemory, .name = "paged cross-attention KV, one table a request", .flags = "--kv-cache-memory, --watermark", .needs_cross_attention = true},
    {.feature = Feature::kBlockSizes, .group = feature_groups::kMemory, .name = "any block size from 1 to 1024 tokens", .flags = "--block-size"},
    {.feature = Feature::kRecompute, .group = feature_groups::kMemory, .name = "preemption by recompute", .flags = "--preemption-mode"},
    {.feature = Feature::kSwap, .group = feature_groups::kMemory, .name = "preemption by swap", .flags = "--preemption-mode, --swap-space"},
    {.feature = Feature::kPoison, .group = feature_groups::kMemory, .name = "poisoned and shuffled blocks", .flags = "--debug-poison"},
    {.feature = Feature::kSharedInputs, .group = feature_groups::kMemory, .name = "one encode for equal inputs in flight", .flags = "--share-identical-inputs"},
    {.feature = Feature::kCachedInputs, .group = feature_groups::kMemory, .name = "encoder inputs kept for later requests, each API key its own", .flags = "--encoder-cache-memory, --encoder-cache-ttl, --cache-scope", .fields = "cache_salt", .others = "DELETE /v1/cache"},
    {.feature = Feature::kPinnedInputs, .group = feature_groups::kMemory, .name = "an encoded input for later requests, also of rows within their prompts", .others = "EncodedInput of engine/encoded_input.h"},
    {.feature = Feature::kPrefixCaching, .group = feature_groups::kMemory, .name = "prefix caching of decoder prompts of two KV blocks and more", .flags = "--enable-prefix-caching", .fields = "cache_salt"},
    {.feature = Feature::kChunkedPrefill, .group = feature_groups::kMemory, .name = "chunked prefill of decoder prompts", .flags = "--max-num-batched-tokens, --enable-chunked-prefill"},
    {.feature = Feature::kSpeculation, .group = feature_groups::kMemory, .name = "speculative decoding, bit-exact: drafts of a request, of n-grams, of the input; not beside beams", .flags = "--speculative-config, --num-speculative-tokens", .fields = "prediction, draft_token_ids"},
    {.feature = Feature::kDraftModel, .group = feature_groups::kMemory, .name = "drafts of a smaller model of the same vocabulary, bit-exact; one with the model's own encoder shares its encodes; not beside beams, on one process and the processor", .flags = "--speculative-config", .others = "--speculative-config: method model", .needs_cross_attention = true},
    {.feature = Feature::kDraftHeads, .group = feature_groups::kMemory, .name = "drafts of heads (EAGLE, Medusa, MTP), trees of drafts", .others = "--speculative-config: method eagle, eagle3, medusa, mlp_speculator, suffix, mtp, deepseek_mtp", .refusal = "drafts of heads and trees are not supported: --speculative-config has the methods given, ngram, copy and model"},

    {.feature = Feature::kStoredWeights, .group = feature_groups::kNumbers, .name = "weights kept as the checkpoint stores them: float32, bfloat16 or float16", .flags = "--dtype", .others = "model.safetensors, pytorch_model.bin"},
    {.feature = Feature::kInt8Weights, .group = feature_groups::kNumbers, .name = "any checkpoint's weights quantised to int8 while it is loaded", .flags = "--quantization"},
    {.feature = Feature::kInt4Weights, .group = feature_groups::kNumbers, .name = "any checkpoint's weights rounded to int4 in groups while it is loaded, and inputs of products to int8; 4-bit codes of a checkpoint stay", .flags = "--quantization"},
    {.feature = Feature::kQuantization, .group = feature_groups::kNumbers, .name = "other quantisations while a checkpoint is loaded", .flags = "--quantization", .others = "quant_method: online, rtn, ptpc_fp8, fp8_per_tensor, fp8_per_block, int8_per_channel_weight_only, deepspeedfp, tpu_int8, neuron_quant", .refusal = "int8 and int4 are the quantisations at load time; what a checkpoint is quantised to already is read without a flag"},
    {.feature = Feature::kFloat32, .group = feature_groups::kNumbers, .name = "weights kept in float32", .flags = "--dtype"},
    {.feature = Feature::kBFloat16, .group = feature_groups::kNumbers, .name = "weights kept in bfloat16; products in float32, on AMX in bfloat16 with float32 sums", .flags = "--dtype"},
    {.feature = Feature::kFloat16, .group = feature_groups::kNumbers, .name = "weights kept in float16, arithmetic in float32", .flags = "--dtype"},
    {.feature = Feature::kFloat32Kv, .group = feature_groups::kNumbers, .name = "KV cache in float32", .flags = "--kv-cache-dtype", .kv_dtype = DType::kFloat32},
    {.feature = Feature::kBFloat16Kv, .group = feature_groups::kNumbers, .name = "KV cache in bfloat16", .flags = "--kv-cache-dtype", .kv_dtype = DType::kBFloat16},
    {.feature = Feature::kFloat16Kv, .group = feature_groups::kNumbers, .name = "KV cache in float16", .flags = "--kv-cache-dtype", .kv_dtype = DType::kFloat16},
    {.feature = Feature::kInt8Kv, .group = feature_groups::kNumbers, .name = "KV cache in int8", .flags = "--kv-cache-dtype", .kv_dtype = DType::kInt8},

    {.feature = Feature::kCompressedPacked, .group = feature_groups::kQuantized, .name = "compressed-tensors, pack-quantized: integers of 2 to 8 bits, by group or channel, with or without zero points", .others = "quant_method: compressed-tensors"},
    {.feature = Feature::kCompressedIntegers, .group = feature_groups::kQuantized, .name = "compressed-tensors, int-quantized and naive-quantized: integers in bytes; inputs are rounded as the format says, with `--quantization none` not", .others = "quant_method: compressed-tensors"},
    {.feature = Feature::kCompressedFloat8, .group = feature_groups::kQuantized, .name = "compressed-tensors, float-quantized: float8 e4m3 by tensor, channel or block; inputs are rounded as the format says, with `--quantization none` not", .others = "quant_method: compressed-tensors"},
    {.feature = Feature::kCompressedOthers, .group = feature_groups::kQuantized, .name = "compressed-tensors, sparse, transformed, of 4-bit floats, or not compressed", .others = "quant_method: compressed-tensors", .refusal = "only pack-quantized, int-quantized, naive-quantized and float-quantized are read: save the model in one of them, or give the original checkpoint and --quantization int8"},
    {.feature = Feature::kBitsandbytes8, .group = feature_groups::kQuantized, .name = "bitsandbytes, int8; inputs are not rounded, and so have no outliers", .others = "quant_method: bitsandbytes"},
    {.feature = Feature::kBitsandbytes4, .group = feature_groups::kQuantized, .name = "bitsandbytes, nf4 and fp4, nested or not", .others = "quant_method: bitsandbytes"},
    {.feature = Feature::kGptq, .group = feature_groups::kQuantized, .name = "GPTQ, checkpoint_format gptq and gptq_v2: 2, 3, 4, 8 bits, in any order of inputs", .others = "quant_method: gptq, auto_gptq, gptq_marlin"},
    {.feature = Feature::kAwq, .group = feature_groups::kQuantized, .name = "AWQ, version gemm: 4 bits", .others = "quant_method: awq, auto_awq, awq_marlin"},
    {.feature = Feature::kFloat8, .group = feature_groups::kQuantized, .name = "float8 e4m3 by tensor, channel or block; inputs are not rounded", .others = "quant_method: fp8, fbgemm_fp8, modelopt"},
    {.feature = Feature::kQuanto8, .group = feature_groups::kQuantized, .name = "quanto, qint8 and qfloat8", .others = "quant_method: quanto; quanto_qmap.json"},
    {.feature = Feature::kQuantoOthers, .group = feature_groups::kQuantized, .name = "quanto, qint4, qint2, and quantised activations", .others = "quant_method: quanto; quanto_qmap.json", .refusal = "only qint8 and qfloat8 weights are read: quantise the original checkpoint to qint8 without activations, or give it and --quantization int8"},
    {.feature = Feature::kKernelLayouts, .group = feature_groups::kQuantized, .name = "weights in the order of a kernel for GPUs", .others = "quant_method: marlin, gptq_marlin_24, bitblas, gptq_bitblas, exllama, qqq; checkpoint_format; version: gemv", .refusal = "the weights lie in the order of a kernel for GPUs: give the checkpoint in checkpoint_format gptq or gptq_v2, or AWQ in version gemm"},
    {.feature = Feature::kPythonTensors, .group = feature_groups::kQuantized, .name = "torchao, hqq, eetq", .others = "quant_method: torchao, hqq, eetq", .refusal = "the files describe tensors by classes of Python: give the original checkpoint and --quantization int8"},
    {.feature = Feature::kOtherExports, .group = feature_groups::kQuantized, .name = "quark, Intel Neural Compressor, AutoRound, ipex, gguf", .others = "quant_method: quark, inc, auto-round, ipex, gguf", .refusal = "not read by this name: export the model to GPTQ, AWQ or compressed-tensors, or give the original checkpoint and --quantization int8"},
    {.feature = Feature::kMicroscaling, .group = feature_groups::kQuantized, .name = "floats of 4 bits, and scales that are powers of two", .others = "quant_method: mxfp4, gpt_oss_mxfp4, mxfp8, nvfp4, petit_nvfp4, modelopt_fp4, modelopt_mxfp8, modelopt_mixed, fp_quant, deepseek_v4_fp8", .refusal = "no encoder/decoder model is known in it: give the original checkpoint and --quantization int8"},
    {.feature = Feature::kCodebooks, .group = feature_groups::kQuantized, .name = "codebooks, rotations and ternary weights", .others = "quant_method: aqlm, vptq, higgs, spqr, squeezellm, sinq, bitnet", .refusal = "not read: give the original checkpoint and --quantization int8"},
    {.feature = Feature::kQuantizedExperts, .group = feature_groups::kQuantized, .name = "quantised mixtures of experts", .others = "quant_method: experts_int8, moe_wna16", .refusal = "no mixture of experts is supported"},

    {.feature = Feature::kForeignFiles, .group = feature_groups::kModels, .name = "models in files of other programs: CTranslate2, whisper.cpp, llama.cpp (T5), Marian", .others = "model.bin, ggml-*.bin, *.gguf, *.npz"},
    {.feature = Feature::kSlidingWindow, .group = feature_groups::kModels, .name = "sliding-window attention", .others = "config.json: sliding_window, attention_window", .refusal = "sliding-window attention is not supported"},
    {.feature = Feature::kStrictMasks, .group = feature_groups::kModels, .name = "Mllama: the masks of Meta's code in place of transformers'", .flags = "--mllama-strict-mask", .others = "config.json: mllama_strict_mask", .modality = "image", .needs_cross_attention = true},
    {.feature = Feature::kLora, .group = feature_groups::kModels, .name = "LoRA adapters", .flags = "--enable-lora, --lora-modules", .others = "adapter_config.json", .refusal = "LoRA adapters are not supported: merge them into the model's weights"},
    {.feature = Feature::kCpu, .group = feature_groups::kModels, .name = "the processor: generic x86-64, AVX2, AVX-512", .flags = "--device, --isa"},
    {.feature = Feature::kVulkan, .group = feature_groups::kModels, .name = "a GPU by Vulkan, tested on lavapipe alone: float32 arithmetic and KV, weights of 16 and 32 bits, one rank, no encode slices, no shortlists; by the device's matrix units where they are faster (docs/devices.md)", .flags = "--device, --device-matrices, --device-arithmetic"},
    {.feature = Feature::kRecordedSteps, .group = feature_groups::kModels, .name = "recorded steps on a Vulkan device: one recording for each number of rows, filled up to 1, 2, 4, ... 64 and multiples of 64, is submitted again with other lengths", .flags = "--device, --no-recordings"},
    {.feature = Feature::kOtherDevices, .group = feature_groups::kModels, .name = "other devices", .flags = "--device", .refusal = "this version runs on the processor, or on a Vulkan device"},
    {.feature = Feature::kSeparatedEncoder, .group = feature_groups::kModels, .name = "encoders in processes of their own, on one machine or several", .flags = "--epd, --role, --broker"},
    {.feature = Feature::kTensorParallel, .group = feature_groups::kModels, .name = "tensor parallelism: 2, 4 or 8 processes of one host, or of several, hold the model together, with one process's bits, where they divide its heads", .flags = "--tensor-parallel-size, --nnodes"},
    {.feature = Feature::kPipelineParallel, .group = feature_groups::kModels, .name = "pipeline parallelism: stages of layers on 2 to 8 processes, with one process's bits; each stage works on a step of its own where several requests run; it brings memory", .flags = "--pipeline-parallel-size, --pipeline-layers, --nnodes"},
    {.feature = Feature::kRanksAndSeparatedEncoder, .group = feature_groups::kModels, .name = "ranks or stages, and encoders in processes of their own", .flags = "--tensor-parallel-size, --pipeline-parallel-size, --epd, --role", .refusal = "not together: give one rank and one stage, or no --epd and --role"},
    {.feature = Feature::kRanksAndReplicas, .group = feature_groups::kModels, .name = "replicas of ranks or stages in one process", .flags = "--tensor-parallel-size, --pipeline-parallel-size, --replicas", .refusal = "start several servers, each with its ranks"},
    {.feature = Feature::kRanksAndSlices, .group = feature_groups::kModels, .name = "ranks or stages, and encodes in slices", .flags = "--tensor-parallel-size, --pipeline-parallel-size, --encode-slice", .refusal = "give --encode-slice none, as is the default of ranks"},
    {.feature = Feature::kRanksAndDraftModel, .group = feature_groups::kModels, .name = "ranks or stages, and a draft model", .flags = "--tensor-parallel-size, --pipeline-parallel-size, --speculative-config", .refusal = "a draft model runs beside one rank; other methods of --speculative-config run with ranks"},
    {.feature = Feature::kRanksOnDevice, .group = feature_groups::kModels, .name = "ranks or stages on a Vulkan device", .flags = "--tensor-parallel-size, --pipeline-parallel-size, --device", .refusal = "ranks and stages are the processor's alone: give --device cpu"},
};
// clang-format on

constexpr const FeatureRow& feature_row(Feature feature) { return kFeatures[static_cast<size_t>(feature)]; }

constexpr bool rows_stand_at_their_feature() {
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    if (static_cast<size_t>(kFeatures[i].feature) != i) return false;
  }
  return std::size(kFeatures) == static_cast<size_t>(Feature::kRanksOnDevice) + 1;
}
static_assert(rows_stand_at_their_feature());

}  // namespace transept
