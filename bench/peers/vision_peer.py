"""torch and transformers as a peer of bench/vision.py, in the environment of bench/requirements-vision.txt. Makes random checkpoints of
published shapes, and measures them:

    vision_peer.py make SHAPE FOLDER
    vision_peer.py measure FOLDER --kind tower|generate|pixels --threads N --batch N [--requests N] [--tokens N] [--size H,W] [--beams N]

A measurement is a line of JSON: {"seconds": of each run, "peak_rss_mib", "version"}.
"""
import argparse
import json
import resource
import time
from pathlib import Path

SEED = 1
HALF = [0.5, 0.5, 0.5]
CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


def save_json(folder, name, value):
    (Path(folder) / name).write_text(json.dumps(value, indent=2))


def plain_processor(kind, height, width, mean=HALF, std=HALF, **more):
    return {"image_processor_type": kind, "do_resize": True, "size": {"height": height, "width": width}, "resample": 2, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": mean, "image_std": std, **more}


def composite(encoder, decoder, ids):
    import transformers
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    for name, value in ids.items():
        setattr(config, name, value)
    return transformers.VisionEncoderDecoderModel(config=config)


def trocr(folder, layers, width, heads, ffn):
    """microsoft/trocr-base: ViT-base over 384 x 384, and RoBERTa-large's decoder."""
    import transformers
    encoder = transformers.ViTConfig(image_size=384, qkv_bias=False)
    decoder = transformers.TrOCRConfig(decoder_layers=layers, d_model=width, decoder_attention_heads=heads, decoder_ffn_dim=ffn,
                                       cross_attention_hidden_size=768, scale_embedding=False, use_learned_position_embeddings=True,
                                       layernorm_embedding=True, max_position_embeddings=512)
    composite(encoder, decoder, {"decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2}).save_pretrained(folder)
    save_json(folder, "preprocessor_config.json", plain_processor("ViTImageProcessor", 384, 384))


def donut(folder, layers, width, heads, ffn):
    """naver-clova-ix/donut-base at 1280 x 960."""
    import transformers
    encoder = transformers.DonutSwinConfig(image_size=[1280, 960], depths=[2, 2, 14, 2], num_heads=[4, 8, 16, 32], window_size=10, embed_dim=128)
    decoder = transformers.MBartConfig(is_encoder_decoder=False, is_decoder=True, add_cross_attention=True, decoder_layers=layers, d_model=width,
                                       decoder_attention_heads=heads, decoder_ffn_dim=ffn, vocab_size=57525, max_position_embeddings=1536,
                                       scale_embedding=True, add_final_layer_norm=True)
    composite(encoder, decoder, {"decoder_start_token_id": 2, "pad_token_id": 1, "eos_token_id": 2}).save_pretrained(folder)
    save_json(folder, "preprocessor_config.json",
              plain_processor("DonutImageProcessor", 1280, 960, do_align_long_axis=False, do_thumbnail=True, do_pad=True))


def florence2(folder):
    """microsoft/Florence-2-base: a vocabulary of bytes in place of its own, whose ids are of no interest."""
    import transformers
    text = transformers.BartConfig(vocab_size=51290, d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12,
                                   decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072, max_position_embeddings=1024)
    vision = transformers.Florence2VisionConfig(projection_dim=768)
    config = transformers.Florence2Config(text_config=text.to_dict(), vision_config=vision.to_dict(), image_token_id=51289)
    transformers.Florence2ForConditionalGeneration(config).save_pretrained(folder)
    save_json(folder, "preprocessor_config.json", plain_processor("CLIPImageProcessor", 768, 768, CLIP_MEAN, CLIP_STD, resample=3,
                                                                  do_center_crop=False, image_seq_length=577))


SHAPES = {
    "trocr-base": lambda folder: trocr(folder, 12, 1024, 16, 4096),
    "trocr-base-tower": lambda folder: trocr(folder, 1, 64, 4, 64),  # of the decoder as little as there can be
    "donut-base-tower": lambda folder: donut(folder, 1, 64, 4, 64),
    "florence-2-base": florence2,
}


def make(shape, folder):
    import torch
    torch.manual_seed(SEED)
    SHAPES[shape](folder)


# ---- measurements

def seconds_of(call, rounds):
    found = []
    for _ in range(rounds + 1):  # the first warms up
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return found[1:]


def measure_pixels(options):
    from PIL import Image

    def call():
        with Image.open(options.folder) as image:
            image.convert("RGB").resize((384, 384), Image.Resampling.BILINEAR)
    return {"seconds": seconds_of(call, options.rounds)}


def load(folder):
    import transformers
    transformers.logging.set_verbosity_error()
    kind = json.loads((Path(folder) / "config.json").read_text())["architectures"][0]
    return getattr(transformers, kind).from_pretrained(folder).eval()


def measure_model(options):
    import torch
    torch.set_num_threads(options.threads)
    model = load(options.folder)
    height, width = map(int, options.size.split(","))
    pixels = [torch.rand(options.batch, 3, height, width) * 2 - 1 for _ in range(max(1, options.requests // options.batch))]
    more = {}
    if model.config.model_type == "florence2":  # <image> x 577, <s>, a task's sentence, </s>
        ids = [model.config.image_token_id] * 577 + [0, *range(100, 108), 2]
        more = {"input_ids": torch.tensor([ids] * options.batch)}

    def call():
        with torch.inference_mode():
            for batch in pixels:
                if options.kind == "tower":
                    model.encoder(batch)
                else:
                    model.generate(pixel_values=batch, **more, do_sample=False, num_beams=options.beams, min_new_tokens=options.tokens,
                                   max_new_tokens=options.tokens, early_stopping=False)
    return {"seconds": seconds_of(call, options.rounds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["make", "measure"])
    parser.add_argument("what", help="make: the shape; measure: the folder, or the picture")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--kind", choices=["tower", "generate", "pixels"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--requests", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--size", default="384,384", metavar="H,W")
    options = parser.parse_args()
    if options.verb == "make":
        return make(options.what, options.folder)
    options.folder = options.what
    found = measure_pixels(options) if options.kind == "pixels" else measure_model(options)
    found["peak_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    main()
