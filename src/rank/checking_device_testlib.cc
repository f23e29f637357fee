// The device of checking_device_testing.h. Its memory is mapped twice: at the addresses that views have, where nothing
// may be touched, and at those that its own code uses.
#include "rank/checking_device_testing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "attention/backends.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "ops/conv1d.h"
#include "ops/cpu_device.h"
#include "ops/cpu_ops.h"
#include "ops/gemm.h"
#include "ops/rope.h"
#include "sampling/select.h"

namespace transept::testing {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;  // of address space; a page counts when it is first written
constexpr uint8_t kPoison = 0xFF;

using Counts = CheckingDeviceKind::Counts;

class CheckingMemory final : public DeviceMemory {
 public:
  explicit CheckingMemory(Counts& counts) : counts_(counts), file_(::memfd_create("checking_device", MFD_CLOEXEC)) {
    CHECK(file_ >= 0 && ::ftruncate(file_, kMostBytes) == 0);
    there_ = map(PROT_NONE);
    here_ = map(PROT_READ | PROT_WRITE);
  }
  ~CheckingMemory() override {
    ::munmap(there_, kMostBytes);
    ::munmap(here_, kMostBytes);
    ::close(file_);
  }

  bool is_host() const override { return false; }

  // Memory is not used twice: an address that outlives its owner is noticed, or reads NaN at worst.
  DeviceBuffer allocate(size_t bytes, MemoryUse) override {
    if (bytes == 0) return {};
    const auto size = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), int64_t{4096}));
    const size_t begin = used_.fetch_add(size);
    if (begin + size > kMostBytes) return {};
    std::memset(here_ + begin, kPoison, size);
    return {there_ + begin, bytes, std::make_shared<int>(0)};
  }
  void copy_in(void* to, const void* from_host, size_t bytes) override {
    CHECK(!is_there(from_host) || bytes == 0, "copy_in() of the device's own memory");
    if (bytes > 0) std::memcpy(see(to, bytes), from_host, bytes);
    counts_.bytes_in += static_cast<int64_t>(bytes);
  }
  void copy_out(void* to_host, const void* from, size_t bytes) override {
    CHECK(!is_there(to_host) || bytes == 0, "copy_out() into the device's own memory");
    if (bytes > 0) std::memcpy(to_host, see(from, bytes), bytes);
    counts_.bytes_out += static_cast<int64_t>(bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(see(to, bytes), see(from, bytes), bytes);
    counts_.bytes_within += static_cast<int64_t>(bytes);
  }
  void fill(void* to, uint8_t value, size_t bytes) override {
    if (bytes > 0) std::memset(see(to, bytes), value, bytes);
  }
  uint64_t free_bytes() const override { return host_memory().free_bytes(); }

  bool is_there(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= there_ && byte < there_ + kMostBytes;
  }

  // Where the device's own code finds what a view has at `address`.
  void* see(const void* address, size_t bytes) const {
    const auto* byte = static_cast<const std::byte*>(address);
    CHECK(is_there(byte) && byte + bytes <= there_ + used_.load(), "an op was given ", bytes, " bytes at ",
          reinterpret_cast<uintptr_t>(address), ", which is no address of the device");
    return here_ + (byte - there_);
  }

  // While one lives, the addresses of views may be touched: code of the device that takes whole objects.
  class Opened final {
   public:
    explicit Opened(CheckingMemory& memory) : memory_(memory) { memory_.protect(PROT_READ | PROT_WRITE); }
    ~Opened() { memory_.protect(PROT_NONE); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    CheckingMemory& memory_;
  };

 private:
  std::byte* map(int rights) const {
    void* data = ::mmap(nullptr, kMostBytes, rights, MAP_SHARED | MAP_NORESERVE, file_, 0);
    CHECK(data != MAP_FAILED);
    return static_cast<std::byte*>(data);
  }
  void protect(int rights) { CHECK(::mprotect(there_, used_.load(), rights) == 0); }

  Counts& counts_;
  int file_;
  std::byte* there_ = nullptr;
  std::byte* here_ = nullptr;
  std::atomic<size_t> used_{0};
};

class CheckingDevice final : public Device {
 public:
  CheckingDevice(CheckingMemory& memory, Counts& counts, ThreadPool& threads, Isa isa)
      : memory_(memory), counts_(counts), cpu_(threads, isa) {}

  std::string_view name() const override { return "checking"; }
  DeviceMemory& memory() const override { return memory_; }
  const OpTable& ops() const override;

  CheckingMemory& checking_memory() const { return memory_; }
  Counts& counts() const { return counts_; }
  CpuDevice& cpu() { return cpu_; }
  // The memory of AttentionBackend::plan(), until the next one.
  Arena& next_plan() {
    plan_ = std::make_unique<Arena>(Arena::kAlignment);
    return *plan_;
  }

 private:
  CheckingMemory& memory_;
  Counts& counts_;
  CpuDevice cpu_;
  std::unique_ptr<Arena> plan_;
};

CheckingDevice& checking(Context& context) { return static_cast<CheckingDevice&>(context.device); }

// The processor's own context for one call: its memory is the host's, and all of it comes from the heap.
struct Inside {
  explicit Inside(Context& context)
      : device(checking(context)), scratch(Arena::kAlignment), inner{device.cpu(), scratch, false, context.counters} {}

  TensorView see(const TensorView& view) const {
    if (view.empty()) return view;
    int64_t last = 0;
    for (int i = 0; i < view.rank; ++i) last += (view.dim(i) - 1) * view.stride[static_cast<size_t>(i)];
    TensorView seen = view;
    seen.raw = device.checking_memory().see(view.raw, static_cast<size_t>(last + 1) * dtype_bytes(view.dtype));
    return seen;
  }
  const float* see(const float* values, int64_t count) const {
    if (values == nullptr || count == 0) return nullptr;
    return static_cast<const float*>(device.checking_memory().see(values, static_cast<size_t>(count) * sizeof(float)));
  }
  PackedMatrix see(const PackedMatrix& w) const {
    const auto seen = [&]<typename T>(std::span<const T> values) {
      if (values.empty()) return values;
      return std::span(static_cast<const T*>(device.checking_memory().see(values.data(), values.size_bytes())),
                       values.size());
    };
    const PackedBytes& views = w.views();
    return w.seen_at({seen(views.panels), seen(views.scales), seen(views.sums)});
  }

  CheckingDevice& device;
  Arena scratch;
  Context inner;
};

// Runs `op` inside, unless this is a dry run: step memory of the processor's own is not the device's.
template <typename F>
void run_op(Context& context, const F& op) {
  if (context.dry_run) return;
  Inside inside(context);
  ++inside.device.counts().num_ops;
  op(inside);
}

void checked_gemm(Context& context, const GemmInput& input, const PackedMatrix& w, const Epilogue& epilogue,
                  const TensorView& y) {
  CHECK(input.statistics == nullptr, "given statistics are not there yet");
  run_op(context, [&](Inside& in) {
    Epilogue seen = epilogue;
    seen.bias = in.see(epilogue.bias, w.n());
    seen.residual = in.see(epilogue.residual);
    cpu_ops::gemm(in.inner, {in.see(input.x), nullptr, input.leaves}, in.see(w), seen, in.see(y));
  });
}

constexpr OpTable kCheckingOps = {
    .gemm = checked_gemm,
    .round_inputs =
        [](Context& context, const TensorView& x, const InputQuantization& inputs, const RowStatistics* statistics,
           const TensorView& y) {
          run_op(context,
                 [&](Inside& in) { cpu_ops::round_inputs(in.inner, in.see(x), inputs, statistics, in.see(y)); });
        },
    .layer_norm =
        [](Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
           const TensorView& y) {
          run_op(context, [&](Inside& in) {
            const int64_t n = x.dim(1);
            cpu_ops::layer_norm(in.inner, in.see(x), in.see(weight, n), in.see(bias, n), epsilon, in.see(y));
          });
        },
    .group_norm =
        [](Context& context, const TensorView& x, const float* weight, const float* bias, float epsilon,
           const TensorView& y) {
          run_op(context, [&](Inside& in) {
            const int64_t n = x.dim(1);
            cpu_ops::group_norm(in.inner, in.see(x), in.see(weight, n), in.see(bias, n), epsilon, in.see(y));
          });
        },
    .rms_norm =
        [](Context& context, const TensorView& x, const float* weight, float epsilon, const TensorView& y) {
          run_op(context, [&](Inside& in) {
            cpu_ops::rms_norm(in.inner, in.see(x), in.see(weight, x.dim(1)), epsilon, in.see(y));
          });
        },
    .gated_activation =
        [](Context& context, Activation activation, const TensorView& gate, const TensorView& x, const TensorView& y) {
          run_op(context, [&](Inside& in) {
            cpu_ops::gated_activation(in.inner, activation, in.see(gate), in.see(x), in.see(y));
          });
        },
    .fill_rope_angles =
        [](Context& context, const Rope& rope, View<int32_t> positions, const RopeAngles& angles) {
          run_op(context, [&](Inside& in) {
            const RopeAngles seen{in.see(angles.cosines), in.see(angles.sines), angles.pairs};
            cpu_ops::fill_rope_angles(in.inner, rope, positions, seen);
          });
        },
    .apply_rope =
        [](Context& context, const RopeAngles& angles, const TensorView& x) {
          run_op(context, [&](Inside& in) {
            const RopeAngles seen{in.see(angles.cosines), in.see(angles.sines), angles.pairs};
            cpu_ops::apply_rope(in.inner, seen, in.see(x));
          });
        },
    .to_time_major =
        [](Context& context, std::span<const float> x, const TensorView& y) {
          run_op(context, [&](Inside& in) {
            in.device.counts().bytes_in += static_cast<int64_t>(x.size_bytes());
            cpu_ops::to_time_major(in.inner, x, in.see(y));
          });
        },
    .upload =
        [](Context& context, std::span<const float> x, const TensorView& y) {
          run_op(context, [&](Inside& in) {
            in.device.counts().bytes_in += static_cast<int64_t>(x.size_bytes());
            cpu_ops::upload(in.inner, x, in.see(y));
          });
        },
    .fill_zero =
        [](Context& context, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::fill_zero(in.inner, in.see(y)); });
        },
    .write_rows =
        [](Context& context, MakeRow make_row, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::write_rows(in.inner, make_row, in.see(y)); });
        },
    .add_rows =
        [](Context& context, MakeRow make_row, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::add_rows(in.inner, make_row, in.see(y)); });
        },
    .gather_rows =
        [](Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::gather_rows(in.inner, in.see(x), rows, in.see(y)); });
        },
    .look_up_rows =
        [](Context& context, const TensorView& table, View<int32_t> rows, float scale, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::look_up_rows(in.inner, in.see(table), rows, scale, in.see(y)); });
        },
    .add_looked_up_rows =
        [](Context& context, const TensorView& table, View<int32_t> rows, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::add_looked_up_rows(in.inner, in.see(table), rows, in.see(y)); });
        },
    .clear_missing_rows =
        [](Context& context, View<int32_t> rows, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::clear_missing_rows(in.inner, rows, in.see(y)); });
        },
    .scatter_add_rows =
        [](Context& context, const TensorView& x, View<int32_t> rows, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::scatter_add_rows(in.inner, in.see(x), rows, in.see(y)); });
        },
    .add_gated =
        [](Context& context, const TensorView& x, const float* gate, int64_t gate_size, const TensorView& y) {
          run_op(context, [&](Inside& in) {
            cpu_ops::add_gated(in.inner, in.see(x), in.see(gate, gate_size), gate_size, in.see(y));
          });
        },
    .copy_rows_of_kind =
        [](Context& context, const TensorView& x, View<uint8_t> kinds, uint8_t kind, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::copy_rows_of_kind(in.inner, in.see(x), kinds, kind, in.see(y)); });
        },
    .write_row_slots =
        [](Context& context, const TensorView& x, View<int64_t> slots, int32_t block_size, const TensorView& cache) {
          run_op(context,
                 [&](Inside& in) { cpu_ops::write_row_slots(in.inner, in.see(x), slots, block_size, in.see(cache)); });
        },
    .read_row_slots =
        [](Context& context, const TensorView& cache, View<int64_t> slots, int32_t block_size, View<int32_t> rows,
           const TensorView& y) {
          run_op(context, [&](Inside& in) {
            cpu_ops::read_row_slots(in.inner, in.see(cache), slots, block_size, rows, in.see(y));
          });
        },
    .add_depthwise_conv =
        [](Context& context, const TensorView& x, int64_t height, int64_t width, const float* weight, const float* bias,
           const TensorView& y) {
          run_op(context, [&](Inside& in) {
            const int64_t n = x.dim(1);
            cpu_ops::add_depthwise_conv(in.inner, in.see(x), height, width, in.see(weight, 9 * n), in.see(bias, n),
                                        in.see(y));
          });
        },
    .add_channel_products =
        [](Context& context, const TensorView& q, const TensorView& k, const TensorView& sums) {
          run_op(context,
                 [&](Inside& in) { cpu_ops::add_channel_products(in.inner, in.see(q), in.see(k), in.see(sums)); });
        },
    .softmax_rows =
        [](Context& context, float scale, const TensorView& x) {
          run_op(context, [&](Inside& in) { cpu_ops::softmax_rows(in.inner, scale, in.see(x)); });
        },
    .mix_channels =
        [](Context& context, const TensorView& v, const TensorView& weights, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::mix_channels(in.inner, in.see(v), in.see(weights), in.see(y)); });
        },
    .mean_of_rows =
        [](Context& context, const TensorView& x, const TensorView& y) {
          run_op(context, [&](Inside& in) { cpu_ops::mean_of_rows(in.inner, in.see(x), in.see(y)); });
        },
};

const OpTable& CheckingDevice::ops() const { return kCheckingOps; }

class CheckingAttention final : public AttentionBackend {
 public:
  explicit CheckingAttention(std::unique_ptr<AttentionBackend> backend) : backend_(std::move(backend)) {}

  std::string_view name() const override { return backend_->name(); }
  bool supports(const AttentionCapabilities& wanted, std::string* why) const override {
    return backend_->supports(wanted, why);
  }
  size_t block_bytes(const KvSpec& spec, int32_t block_size, DType kv_dtype) const override {
    return backend_->block_bytes(spec, block_size, kv_dtype);
  }
  void plan(Context& context, ForwardBatch& batch) const override {
    if (context.dry_run) return;
    CheckingDevice& device = checking(context);
    Context inner{device.cpu(), device.next_plan()};
    backend_->plan(inner, batch);
  }
  void run(Context& context, AttentionType type, const AttentionMetadata& metadata,
           const AttentionArgs& args) const override {
    if (context.dry_run) return;
    Inside in(context);
    ++in.device.counts().num_attentions;
    AttentionArgs seen = args;
    for (TensorView* view : {&seen.q, &seen.k, &seen.v, &seen.out, &seen.kv_cache}) *view = in.see(*view);
    AttentionBias bias;
    if (args.bias != nullptr) {
      bias = *args.bias;
      bias.materialized = in.see(bias.materialized);
      bias.values = in.see(bias.values, 1);
      seen.bias = &bias;
    }
    AttentionCapture capture;
    if (args.capture != nullptr) {
      capture = *args.capture;
      capture.out = in.see(capture.out);
      seen.capture = &capture;
    }
    backend_->run(in.inner, type, metadata, seen);
  }

 private:
  std::unique_ptr<AttentionBackend> backend_;
};

// Opens the device's memory instead of translating the output layer: no host code runs meanwhile.
class CheckingSelector final : public Selector {
 public:
  void select(Context& context, const LmHead& lm_head, const TensorView& hidden, std::span<const RowRequest> rows,
              SampleOutput& output) const override {
    Inside in(context);
    ++in.device.counts().num_selections;
    (void)in.see(hidden);
    const CheckingMemory::Opened opened(in.device.checking_memory());
    transept::select(in.inner, lm_head, hidden, rows, output);
  }
  void dry_run(Context&, const LmHead&, const TensorView&, int64_t) const override {}
};

}  // namespace

struct CheckingDeviceKind::Impl {
  Counts counts;
  CheckingMemory memory{counts};
};

CheckingDeviceKind::CheckingDeviceKind() : impl_(std::make_unique<Impl>()) {}
CheckingDeviceKind::~CheckingDeviceKind() = default;

DeviceMemory& CheckingDeviceKind::memory() const { return impl_->memory; }
const Counts& CheckingDeviceKind::counts() const { return impl_->counts; }

std::unique_ptr<Device> CheckingDeviceKind::make_device(ThreadPool& threads, Isa isa) const {
  return std::make_unique<CheckingDevice>(impl_->memory, impl_->counts, threads, isa);
}

StatusOr<std::shared_ptr<const AttentionBackend>> CheckingDeviceKind::make_attention(const std::string& name) const {
  ASSIGN_OR_RETURN(std::unique_ptr<AttentionBackend> backend, make_attention_backend(name));
  return std::shared_ptr<const AttentionBackend>(std::make_shared<CheckingAttention>(std::move(backend)));
}

std::unique_ptr<const Selector> CheckingDeviceKind::make_selector(ThreadPool& /*threads*/, Isa /*isa*/) const {
  return std::make_unique<CheckingSelector>();
}

}  // namespace transept::testing
