"""What compressed-tensors, bitsandbytes and quanto make of a matrix: the tensors of a checkpoint by their names beside it, and the numbers that the library reads
from them. Scales and zeros are the library's where it computes them."""
import bitsandbytes.functional as bnb
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams

from models import Made, write_folder
from optimum.quanto import AbsmaxOptimizer, qfloat8, qint8, quantize_weight


def of_matrices(config, store):
    """A case of every matrix of the model's layers. config: quantization_config of config.json. store: of a float32 matrix [n, k] makes
    ({part of the name: tensor}, the library's float matrix)."""
    def make(bart, folder):
        stored, widened = dict(bart.tensors), dict(bart.tensors)
        for layer in bart.layers:
            parts, floats = store(bart.tensors[layer])
            del stored[layer]
            stored |= {f"{layer.removesuffix('weight')}{part}": tensor for part, tensor in parts.items()}
            widened[layer] = floats.to(torch.float32)
        return Made(write_folder(folder / "stored", bart.config, stored, quantization_config=config), write_folder(folder / "widened", bart.config, widened),
                    bart.folder, bart.requests)
    return make


def extremes(weight, args):
    """Least and largest weight of what shares a scale, in the shape of scales."""
    n, k = weight.shape
    if args.strategy == "tensor":
        parts = weight.reshape(1, -1)
        return parts.amin(-1), parts.amax(-1)
    if args.strategy == "block":
        rows, columns = args.block_structure
        parts = weight.reshape(n // rows, rows, k // columns, columns)
        return parts.amin((1, 3)), parts.amax((1, 3))
    parts = weight.reshape(n, -1, args.group_size if args.strategy == "group" else k)
    return parts.amin(-1), parts.amax(-1)


def compressed_tensors(form, inputs=None, scale_type=torch.float32, **args):
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**args), input_activations=QuantizationArgs(**inputs) if inputs else None, format=form)
    compressor = BaseCompressor.get_value_from_registry(form)

    def store(weight):
        scale, zero = calculate_qparams(*extremes(weight, scheme.weights), scheme.weights)
        scale = scale.to(scale_type).to(torch.float32)
        parts = compressor.compress({"weight": weight, "weight_scale": scale, "weight_zero_point": zero}, scheme)
        floats = compressor.decompress(dict(parts), scheme)["weight"]
        parts["weight_scale"] = parts["weight_scale"].to(scale_type)
        return parts, floats

    config = {"quant_method": "compressed-tensors", "format": form, "quantization_status": "compressed", "ignore": ["lm_head"], "kv_cache_scheme": None,
              "config_groups": {"group_0": scheme.model_dump(mode="json")}}
    return of_matrices(config, store)


def bitsandbytes_4bit(kind, is_nested, block_size=64):
    def store(weight):
        codes, state = bnb.quantize_4bit(weight, blocksize=block_size, compress_statistics=is_nested, quant_type=kind)
        return ({"weight": codes, **{f"weight.{name}": tensor for name, tensor in state.as_dict(packed=True).items()}},
                bnb.dequantize_4bit(codes, state))

    return of_matrices({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": kind,
                 "bnb_4bit_use_double_quant": is_nested, "bnb_4bit_compute_dtype": "float32", "bnb_4bit_quant_storage": "uint8",
                 "llm_int8_skip_modules": None}, store)


def bitsandbytes_int8():
    def store(weight):
        codes, scales, _ = bnb.int8_vectorwise_quant(weight.to(torch.float16))
        # The library multiplies codes by a row's largest weight first, and by 1 / 127 then; a checkpoint's scale is the product of these.
        floats = codes * (scales / 127).unsqueeze(1)
        torch.testing.assert_close(floats, bnb.int8_vectorwise_dequant(codes, scales), rtol=2**-22, atol=0)
        return {"weight": codes, "SCB": scales, "weight_format": torch.zeros((), dtype=torch.uint8)}, floats

    return of_matrices({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False, "llm_int8_threshold": 6.0, "llm_int8_skip_modules": None}, store)


def of_quanto(qtype, weights):
    def store(weight):
        quantized = quantize_weight(weight, qtype=qtype, axis=0, scale=AbsmaxOptimizer()(weight, qtype, axis=0))
        parts = {}
        quantized.save_to_state_dict(parts, "weight.", False)
        return parts, quantized.dequantize()

    return of_matrices({"quant_method": "quanto", "weights": weights, "activations": None, "modules_to_not_convert": ["lm_head"]}, store)


PER_TOKEN = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True, "symmetric": True}
FLOAT_PER_TOKEN = {**PER_TOKEN, "type": "float"}

MATRICES = {
    **{f"pack-quantized-{bits}-{'symmetric' if symmetric else 'zeros'}-{name}":
       compressed_tensors("pack-quantized", num_bits=bits, symmetric=symmetric, **strategy)
       for bits in (4, 8) for symmetric in (True, False)
       for name, strategy in (("g32", {"strategy": "group", "group_size": 32}), ("g128", {"strategy": "group", "group_size": 128}),
                              ("channel", {"strategy": "channel"}))},
    **{f"pack-quantized-{bits}-bits": compressed_tensors("pack-quantized", num_bits=bits, symmetric=bits % 2 == 0, strategy="group", group_size=32)
       for bits in (2, 3, 5, 6, 7)},
    "pack-quantized-float16-scales": compressed_tensors("pack-quantized", scale_type=torch.float16, num_bits=4, symmetric=True, strategy="group", group_size=64),
    "pack-quantized-bfloat16-scales": compressed_tensors("pack-quantized", scale_type=torch.bfloat16, num_bits=4, symmetric=False, strategy="group", group_size=64),
    "int-quantized-channel": compressed_tensors("int-quantized", PER_TOKEN, num_bits=8, symmetric=True, strategy="channel"),
    "int-quantized-tensor": compressed_tensors("int-quantized", PER_TOKEN, num_bits=8, symmetric=True, strategy="tensor"),
    "float-quantized-channel": compressed_tensors("float-quantized", FLOAT_PER_TOKEN, num_bits=8, type="float", symmetric=True, strategy="channel"),
    "float-quantized-tensor": compressed_tensors("float-quantized", FLOAT_PER_TOKEN, num_bits=8, type="float", symmetric=True, strategy="tensor"),
    "float-quantized-block": compressed_tensors("float-quantized", FLOAT_PER_TOKEN, num_bits=8, type="float", symmetric=True, strategy="block", block_structure=[64, 64]),
    **{f"bitsandbytes-{kind}{'-nested' if nested else ''}-{block}": bitsandbytes_4bit(kind, nested, block)
       for kind in ("nf4", "fp4") for nested in (False, True) for block in (64, 128)},
    "bitsandbytes-int8": bitsandbytes_int8(),
    "quanto-int8": of_quanto(qint8, "int8"),
    "quanto-float8": of_quanto(qfloat8, "float8"),
}
