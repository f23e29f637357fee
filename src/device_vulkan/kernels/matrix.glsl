// Products of a panel of 32 outputs and a tile of rows by the device's matrix units, a tile of [m, k] by [k, n] at once.
// What a tile is, is the driver's: specialization constants (vulkan_device.cc). The inputs are divided in quarters; a
// unit of work is a quarter and a tile's columns, and each subgroup has kOwn of them. A step takes a tile's inputs of all
// quarters: all lanes bring both sides to shared memory, as words, and each subgroup adds its units' products to its
// sums. Rows past the last repeat it, and inputs past the last are 0.
//
// The matrices are GL_NV_cooperative_matrix's, which the compilers of all systems know; VK_KHR_cooperative_matrix's are
// made of them when a kernel is loaded (matrix_words.h).
layout(constant_id = 0) const uint kTileRows = 8;
layout(constant_id = 1) const uint kTileColumns = 8;
layout(constant_id = 2) const uint kTileInputs = 8;
layout(constant_id = 3) const uint kSubgroups = 16;  // of a group

const uint kColumns = 32, kParts = 4;
const uint kRows = kTileRows;
const uint kUnits = kParts * kColumns / kTileColumns;
const uint kOwn = (kUnits + kSubgroups - 1) / kSubgroups;

// Unit i of this subgroup; from kUnits on it is none.
uint unit_of(uint i) {
#ifdef REVERSED
  return kSubgroups - 1 - gl_SubgroupID + i * kSubgroups;
#else
  return gl_SubgroupID + i * kSubgroups;
#endif
}
