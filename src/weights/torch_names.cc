#include "weights/torch_names.h"

#include <iterator>

namespace transept {
namespace {

constexpr TorchName storage(std::string_view name, std::string_view dtype) {
  return {"torch", name, TorchNameKind::kStorage, dtype};
}
constexpr TorchName dtype(std::string_view name, std::string_view spelled) {
  return {"torch", name, TorchNameKind::kDType, spelled};
}

constexpr TorchName kNames[] = {
    {"collections", "OrderedDict", TorchNameKind::kOrderedDict},
    {"torch._utils", "_rebuild_tensor_v2", TorchNameKind::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v3", TorchNameKind::kRebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", TorchNameKind::kRebuildParameter},
    {"torch.storage", "UntypedStorage", TorchNameKind::kStorage, "U8"},
    storage("FloatStorage", "F32"),
    storage("HalfStorage", "F16"),
    storage("BFloat16Storage", "BF16"),
    storage("DoubleStorage", "F64"),
    storage("LongStorage", "I64"),
    storage("IntStorage", "I32"),
    storage("ShortStorage", "I16"),
    storage("CharStorage", "I8"),
    storage("ByteStorage", "U8"),
    storage("BoolStorage", "BOOL"),
    storage("ComplexFloatStorage", "C64"),
    // Types without a storage of their own lie in untyped ones.
    dtype("float8_e4m3fn", "F8_E4M3"),
    dtype("float8_e5m2", "F8_E5M2"),
    dtype("float8_e8m0fnu", "F8_E8M0"),
    dtype("uint16", "U16"),
    dtype("uint32", "U32"),
    dtype("uint64", "U64"),
};

struct Opcode {
  uint8_t code;
  std::string_view name;
};
// Of protocols 0 to 5: what is refused is refused by its name.
constexpr Opcode kOpcodes[] = {
    {'(', "MARK"},
    {'.', "STOP"},
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'F', "FLOAT"},
    {'I', "INT"},
    {'J', "BININT"},
    {'K', "BININT1"},
    {'L', "LONG"},
    {'M', "BININT2"},
    {'N', "NONE"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'R', "REDUCE"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'X', "BINUNICODE"},
    {'a', "APPEND"},
    {'b', "BUILD"},
    {'c', "GLOBAL"},
    {'d', "DICT"},
    {'}', "EMPTY_DICT"},
    {'e', "APPENDS"},
    {'g', "GET"},
    {'h', "BINGET"},
    {'i', "INST"},
    {'j', "LONG_BINGET"},
    {'l', "LIST"},
    {']', "EMPTY_LIST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {'q', "BINPUT"},
    {'r', "LONG_BINPUT"},
    {'s', "SETITEM"},
    {'t', "TUPLE"},
    {')', "EMPTY_TUPLE"},
    {'u', "SETITEMS"},
    {'G', "BINFLOAT"},
    {0x80, "PROTO"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x85, "TUPLE1"},
    {0x86, "TUPLE2"},
    {0x87, "TUPLE3"},
    {0x88, "NEWTRUE"},
    {0x89, "NEWFALSE"},
    {0x8a, "LONG1"},
    {0x8b, "LONG4"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {0x8c, "SHORT_BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x94, "MEMOIZE"},
    {0x95, "FRAME"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

}  // namespace

std::span<const TorchName> torch_names() { return kNames; }

std::optional<size_t> find_torch_name(std::string_view module, std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i].module == module && kNames[i].name == name) return i;
  }
  return std::nullopt;
}

std::string_view pickle_opcode_name(uint8_t opcode) {
  for (const Opcode& row : kOpcodes) {
    if (row.code == opcode) return row.name;
  }
  return "";
}

}  // namespace transept
