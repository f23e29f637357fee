// Which group is the last of several to come to a place: it alone goes on, with what all of them have written. Each counts
// itself in `arrivals` (an operand at kArrivalsPlace), where 0 is before and after. What the others have written to
// coherent operands is seen: barriers of memory stand on both sides of the count. Counts are integers, so the order of
// groups shows in nothing.
READS_WRITES(kArrivalsPlace, uint, arrivals)

shared uint arrived_;

// Whether this group is the last of `count` that come here with this index. REQUIRES: all its lanes call.
bool is_last(uint index, uint count) {
  memoryBarrierBuffer();
  barrier();
  if (lane() == 0) {
    arrived_ = atomicAdd(buffer_arrivals.v[base(kArrivalsPlace) + index], 1u) + 1;
    if (arrived_ == count) set_arrivals(index, 0);
  }
  barrier();
  memoryBarrierBuffer();
  return arrived_ == count;
}
