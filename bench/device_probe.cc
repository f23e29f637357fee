// What a Vulkan device does in a second, as one JSON object: the constants of tools/device_model.py. Plain reads,
// products of each type, an op that waits for the one before it, a submit that is waited for, and the bus both ways.
//
//     device_probe DEVICE [MIB]      DEVICE: as --device takes it; MIB: of each buffer (64)
//
// Figures of a device that computes on the processor say nothing about any other.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "device_vulkan/instance.h"
#include "device_vulkan/kernels.h"
#include "device_vulkan/pick_device.h"
#include "device_vulkan/record_int8.h"
#include "device_vulkan/vulkan_library.h"
#include "device_vulkan/vulkan_memory.h"
#include "device_vulkan/vulkan_stream.h"

namespace transept {
namespace {

constexpr double kLeastSeconds = 0.3;  // of what is timed
constexpr uint32_t kColumns = 1024;

class Probe final {
 public:
  static StatusOr<std::unique_ptr<Probe>> open(const std::string& name, uint64_t mib) {
    ASSIGN_OR_RETURN(const PFN_vkGetInstanceProcAddr entry, load_vulkan());
    ASSIGN_OR_RETURN(const std::shared_ptr<VulkanInstance> instance, VulkanInstance::create(entry));
    ASSIGN_OR_RETURN(const std::vector<VulkanDeviceInfo> devices, instance->devices());
    ASSIGN_OR_RETURN(const size_t index, pick_vulkan_device(devices, name));
    auto probe = std::make_unique<Probe>();
    ASSIGN_OR_RETURN(probe->device_, VulkanDevice::create(instance, devices[index]));
    ASSIGN_OR_RETURN(probe->memory_, VulkanMemory::create(probe->device_));
    ASSIGN_OR_RETURN(probe->stream_, VulkanStream::create(probe->device_, *probe->memory_));
    probe->bytes_ = std::min(mib << 20, probe->memory_->max_bytes()) / (kColumns * 4) * (kColumns * 4);
    ASSIGN_OR_RETURN(probe->large_, probe->memory_->allocate(probe->bytes_, MemoryKind::kDevice));
    ASSIGN_OR_RETURN(probe->other_, probe->memory_->allocate(probe->bytes_, MemoryKind::kDevice));
    ASSIGN_OR_RETURN(probe->up_, probe->memory_->allocate(probe->bytes_, MemoryKind::kUpload));
    ASSIGN_OR_RETURN(probe->back_, probe->memory_->allocate(probe->bytes_, MemoryKind::kReadback));
    Recorder recorder;
    for (const BufferId buffer : {probe->large_, probe->other_}) recorder.fill({buffer, 0, probe->bytes_}, 0x3C003C00u);
    RETURN_IF_ERROR(probe->seconds_of(recorder).status());
    return probe;
  }

  StatusOr<Json> measure() {
    Json json = Json::object();
    const VulkanDeviceInfo& info = device_->info();
    json.set("device", info.name);
    json.set("driver", str_cat(info.driver, ", ", info.driver_version));
    json.set("type", device_type_name(info.type));
    json.set("buffer_bytes", bytes_);
    Recorder recorder;
    recorder.fill({other_, 0, 4}, 1);
    ASSIGN_OR_RETURN(const double submit, seconds_of(recorder));
    json.set("submit_us", submit * 1e6);
    ASSIGN_OR_RETURN(const double dispatches, seconds_of_chain());
    json.set("dispatch_us", std::max(0.0, dispatches - submit) / kChain * 1e6);
    const uint32_t rows = static_cast<uint32_t>(bytes_ / 4 / kColumns);
    const DeviceMatrix all = DeviceMatrix::dense(large_, rows, kColumns);
    const std::array<uint32_t, 3> arguments{kColumns, kColumns, 0};
    recorder.run(kRowSumsKernel, std::as_bytes(std::span(arguments)),
                 std::array{all.range(), all.range(), BufferRange{other_, 0, uint64_t{rows} * 4}}, {.x = rows});
    ASSIGN_OR_RETURN(const double read, seconds_of(recorder));
    json.set("read_bytes_per_s", static_cast<double>(bytes_) / std::max(read - submit, 1e-9));
    recorder.copy({up_, 0, bytes_}, {large_, 0, bytes_});
    ASSIGN_OR_RETURN(const double up, seconds_of(recorder));
    json.set("upload_bytes_per_s", static_cast<double>(bytes_) / std::max(up - submit, 1e-9));
    recorder.copy({large_, 0, bytes_}, {back_, 0, bytes_});
    ASSIGN_OR_RETURN(const double back, seconds_of(recorder));
    json.set("readback_bytes_per_s", static_cast<double>(bytes_) / std::max(back - submit, 1e-9));
    Json products = Json::object();
    for (const auto& [name, format] : {std::pair{"float32", DeviceFormat::kFloat32},
                                       {"float16", DeviceFormat::kFloat16},
                                       {"bfloat16", DeviceFormat::kBFloat16}}) {
      record_product(recorder, DeviceMatrix::dense(large_, kRows, kColumns), weights_of(format), {},
                     DeviceMatrix::dense(other_, kRows, kColumns));
      ASSIGN_OR_RETURN(const double seconds, seconds_of(recorder));
      products.set(name, kFlop / std::max(seconds - submit, 1e-9));
    }
    record_int8(recorder);
    ASSIGN_OR_RETURN(const double seconds, seconds_of(recorder));
    products.set("int8", kFlop / std::max(seconds - submit, 1e-9));
    json.set("product_flop_per_s", std::move(products));
    return json;
  }

 private:
  static constexpr uint32_t kChain = 256, kRows = 64;
  static constexpr double kFlop = 2.0 * kRows * kColumns * kColumns;

  DeviceWeights weights_of(DeviceFormat format) const {
    const uint64_t size = format == DeviceFormat::kFloat32 ? 4 : 2;
    return {{large_, kWeights, uint64_t{kColumns} * kColumns * size}, kColumns, kColumns, format};
  }

  // Rows are rounded, too, as in a model.
  void record_int8(Recorder& recorder) const {
    const DeviceRoundedRows rows{
        {other_, kRoom, kRows * kColumns}, {other_, kRoom + kRows * kColumns, kRows * 8}, kRows, kColumns};
    record_round_rows(recorder, DeviceMatrix::dense(large_, kRows, kColumns), rows);
    const DeviceInt8Weights weights{{large_, kWeights, uint64_t{kColumns} * kColumns},
                                    {large_, 0, kColumns * 4},
                                    {large_, kColumns * 4, kColumns * 4},
                                    kColumns,
                                    kColumns};
    record_product(recorder, rows, weights, {}, DeviceMatrix::dense(other_, kRows, kColumns));
  }

  // Each op waits for the one before it.
  StatusOr<double> seconds_of_chain() {
    Recorder recorder;
    for (uint32_t i = 0; i < kChain; ++i) {
      record_add(recorder, DeviceMatrix::dense(large_, 1, 32), {}, DeviceMatrix::dense(other_, 1, 32));
    }
    return seconds_of(recorder);
  }

  // Of one run, submitted and waited for: the fastest third of many. The recorder is empty then.
  StatusOr<double> seconds_of(Recorder& recorder) {
    ASSIGN_OR_RETURN(const std::unique_ptr<PreparedRecording> prepared, stream_->prepare(recorder.finish()));
    std::vector<double> all;
    for (double total = 0; total < kLeastSeconds || all.size() < 4;) {
      const TimePoint begin = steady_now();
      ASSIGN_OR_RETURN(const Ticket ticket, stream_->submit(*prepared));
      RETURN_IF_ERROR(stream_->wait(ticket, begin + std::chrono::minutes(2)));
      all.push_back(seconds(steady_now() - begin));
      total += all.back();
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 3];
  }

  static constexpr uint64_t kWeights = 1 << 20, kRoom = 1 << 20;  // bytes from the beginning

  std::shared_ptr<VulkanDevice> device_;
  std::unique_ptr<VulkanMemory> memory_;
  std::unique_ptr<VulkanStream> stream_;
  uint64_t bytes_ = 0;
  BufferId large_ = BufferId::kNone, other_ = BufferId::kNone, up_ = BufferId::kNone, back_ = BufferId::kNone;
};

int run(int argc, char** argv) {
  constexpr uint64_t kLeastMib = 16;
  const uint64_t mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 64;
  if (argc < 2 || argc > 3 || mib < kLeastMib) {
    std::fprintf(stderr, "device_probe: expected DEVICE [MIB], at least %d\n", static_cast<int>(kLeastMib));
    return 2;
  }
  StatusOr<std::unique_ptr<Probe>> probe = Probe::open(argv[1], mib);
  const StatusOr<Json> json = probe.ok() ? (*probe)->measure() : StatusOr<Json>(probe.status());
  if (!json.ok()) {
    std::fprintf(stderr, "device_probe: %s\n", error_message(json.status()).c_str());
    return 2;
  }
  std::printf("%s\n", json->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace transept

int main(int argc, char** argv) { return transept::run(argc, argv); }
