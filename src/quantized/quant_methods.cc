#include "quantized/quant_methods.h"

namespace transept {
namespace {

constexpr NamedQuantMethod kMethods[] = {
    {"compressed-tensors", QuantMethod::kCompressedTensors},
    {"bitsandbytes", QuantMethod::kBitsandbytes},
    {"gptq", QuantMethod::kGptq},
    {"auto_gptq", QuantMethod::kGptq},
    {"gptq_marlin", QuantMethod::kGptq},  // vLLM's name of a kernel over the same files
    {"awq", QuantMethod::kAwq},
    {"auto_awq", QuantMethod::kAwq},
    {"awq_marlin", QuantMethod::kAwq},
    {"fp8", QuantMethod::kFloat8},
    {"fbgemm_fp8", QuantMethod::kFloat8},
    {"modelopt", QuantMethod::kModelOpt},
    {"quanto", QuantMethod::kQuanto},
    {"marlin", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"gptq_marlin_24", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"bitblas", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"gptq_bitblas", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"exllama", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"qqq", QuantMethod::kRefused, Feature::kKernelLayouts},
    {"torchao", QuantMethod::kRefused, Feature::kPythonTensors},
    {"hqq", QuantMethod::kRefused, Feature::kPythonTensors},
    {"eetq", QuantMethod::kRefused, Feature::kPythonTensors},
    {"quark", QuantMethod::kRefused, Feature::kOtherExports},
    {"inc", QuantMethod::kRefused, Feature::kOtherExports},
    {"auto-round", QuantMethod::kRefused, Feature::kOtherExports},
    {"ipex", QuantMethod::kRefused, Feature::kOtherExports},
    {"gguf", QuantMethod::kRefused, Feature::kOtherExports},
    {"mxfp4", QuantMethod::kRefused, Feature::kMicroscaling},
    {"gpt_oss_mxfp4", QuantMethod::kRefused, Feature::kMicroscaling},
    {"mxfp8", QuantMethod::kRefused, Feature::kMicroscaling},
    {"nvfp4", QuantMethod::kRefused, Feature::kMicroscaling},
    {"petit_nvfp4", QuantMethod::kRefused, Feature::kMicroscaling},
    {"modelopt_fp4", QuantMethod::kRefused, Feature::kMicroscaling},
    {"modelopt_mxfp8", QuantMethod::kRefused, Feature::kMicroscaling},
    {"modelopt_mixed", QuantMethod::kRefused, Feature::kMicroscaling},
    {"fp_quant", QuantMethod::kRefused, Feature::kMicroscaling},
    {"deepseek_v4_fp8", QuantMethod::kRefused, Feature::kMicroscaling},
    {"aqlm", QuantMethod::kRefused, Feature::kCodebooks},
    {"vptq", QuantMethod::kRefused, Feature::kCodebooks},
    {"higgs", QuantMethod::kRefused, Feature::kCodebooks},
    {"spqr", QuantMethod::kRefused, Feature::kCodebooks},
    {"squeezellm", QuantMethod::kRefused, Feature::kCodebooks},
    {"sinq", QuantMethod::kRefused, Feature::kCodebooks},
    {"bitnet", QuantMethod::kRefused, Feature::kCodebooks},
    {"experts_int8", QuantMethod::kRefused, Feature::kQuantizedExperts},
    {"moe_wna16", QuantMethod::kRefused, Feature::kQuantizedExperts},
    {"online", QuantMethod::kRefused},
    {"rtn", QuantMethod::kRefused},
    {"ptpc_fp8", QuantMethod::kRefused},
    {"fp8_per_tensor", QuantMethod::kRefused},
    {"fp8_per_block", QuantMethod::kRefused},
    {"int8_per_channel_weight_only", QuantMethod::kRefused},
    {"deepspeedfp", QuantMethod::kRefused},
    {"tpu_int8", QuantMethod::kRefused},
    {"neuron_quant", QuantMethod::kRefused},
};

}  // namespace

std::span<const NamedQuantMethod> quant_methods() { return kMethods; }

const NamedQuantMethod* find_quant_method(std::string_view name) {
  for (const NamedQuantMethod& known : kMethods) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

}  // namespace transept
