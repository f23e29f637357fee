"""The ways in which torch.save lays a state dict out. Each writes a folder's weights and leaves the values as they are."""
import json

import torch


def zipped(state, folder):
    torch.save(state, folder / "pytorch_model.bin")


def legacy(state, folder):
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def parameters(state, folder):
    """As a module's own parameters, with the attribute _metadata that state_dict() sets."""
    module = torch.nn.Module()
    wanted = type(module.state_dict())()
    for name, tensor in state.items():
        wanted[name] = torch.nn.Parameter(tensor, requires_grad=False)
    wanted._metadata = {"": {"version": 1}}
    torch.save(wanted, folder / "pytorch_model.bin")


def sharded(state, folder, shards=3, is_zip=True):
    names, index = list(state), {}
    for i in range(shards):
        part = {name: state[name] for name in names[i::shards]}
        file = f"pytorch_model-{i + 1:05d}-of-{shards:05d}.bin"
        torch.save(part, folder / file, _use_new_zipfile_serialization=is_zip)
        index |= dict.fromkeys(part, file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def legacy_sharded(state, folder):
    sharded(state, folder, is_zip=False)


def one_storage(state, folder, is_zip=True):
    """All tensors of a type are views of one storage, one behind the other, from an odd element on."""
    out = {}
    for dtype in {tensor.dtype for tensor in state.values()}:
        names = [name for name, tensor in state.items() if tensor.dtype == dtype]
        flat = torch.cat([torch.zeros(3, dtype=dtype)] + [state[name].reshape(-1) for name in names])
        at = 3
        for name in names:
            out[name] = flat[at:at + state[name].numel()].reshape(state[name].shape)
            at += state[name].numel()
    torch.save({name: out[name] for name in state}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=is_zip)


def legacy_one_storage(state, folder):
    one_storage(state, folder, is_zip=False)


def transposed(state, folder, is_zip=True):
    """The axes of every tensor lie in the other order in memory."""
    def turned(tensor):
        order = tuple(reversed(range(tensor.dim())))
        return tensor.permute(order).contiguous().permute(order)
    torch.save({name: turned(tensor) for name, tensor in state.items()}, folder / "pytorch_model.bin",
               _use_new_zipfile_serialization=is_zip)


def legacy_transposed(state, folder):
    transposed(state, folder, is_zip=False)


def cut_out(state, folder):
    """Every tensor is each second element of each axis of a larger one."""
    def inside(tensor):
        around = torch.full([2 * size + 1 for size in tensor.shape], 7, dtype=tensor.dtype)
        view = around[tuple(slice(1, None, 2) for _ in tensor.shape)]
        view.copy_(tensor)
        return view
    torch.save({name: inside(tensor) for name, tensor in state.items()}, folder / "pytorch_model.bin")


LAYOUTS = {layout.__name__: layout for layout in
           (zipped, legacy, parameters, sharded, legacy_sharded, one_storage, legacy_one_storage, transposed, legacy_transposed, cut_out)}
