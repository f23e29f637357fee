#include "device_vulkan/vulkan_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/log.h"
#include "device_vulkan/kernels.h"

namespace transept {
namespace {

// How long a recording that goes away is waited for.
constexpr auto kLongestGoodbye = std::chrono::seconds(10);

constexpr VkPipelineStageFlags kOps = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT;

uint64_t nanoseconds_until(TimePoint deadline) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (deadline <= now) return 0;
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now).count());
}

}  // namespace

class VulkanStream::Prepared final : public PreparedRecording {
 public:
  explicit Prepared(VulkanStream& of) : stream(of) {}
  ~Prepared() override {
    const Status ended = stream.wait(last, std::chrono::steady_clock::now() + kLongestGoodbye);
    if (absl::IsDeadlineExceeded(ended)) {  // the device has it still
      log_warning("a recording does not end on ", stream.device_->info().name, "; its memory is kept");
      return;
    }
    const VulkanFunctions& f = stream.device_->functions();
    f.vkDestroyDescriptorPool(stream.device_->handle(), sets, nullptr);
    if (commands != VK_NULL_HANDLE) f.vkFreeCommandBuffers(stream.device_->handle(), stream.commands_, 1, &commands);
  }

  VulkanStream& stream;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkDescriptorPool sets = VK_NULL_HANDLE;
  Ticket last = Ticket::kNone;
};

StatusOr<std::unique_ptr<VulkanStream>> VulkanStream::create(std::shared_ptr<VulkanDevice> device,
                                                             VulkanMemory& memory) {
  std::unique_ptr<VulkanStream> stream(new VulkanStream(std::move(device), memory));
  RETURN_IF_ERROR(stream->open());
  return stream;
}

Status VulkanStream::open() {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = device_->info().queue_family;
  TRANSEPT_VULKAN_CALL(device_->functions(), vkCreateCommandPool, device_->handle(), &pool, nullptr, &commands_);
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  TRANSEPT_VULKAN_CALL(device_->functions(), vkCreateSemaphore, device_->handle(), &semaphore, nullptr, &timeline_);
  return ok_status();
}

VulkanStream::~VulkanStream() {
  const Status ended = wait(Ticket{last_ticket_}, std::chrono::steady_clock::now() + kLongestGoodbye);
  if (absl::IsDeadlineExceeded(ended)) return;
  device_->functions().vkDestroySemaphore(device_->handle(), timeline_, nullptr);
  device_->functions().vkDestroyCommandPool(device_->handle(), commands_, nullptr);
}

Status VulkanStream::check(const RecordedOp& op) const {
  for (const Access& access : op.accesses()) {
    RETURN_IF_ERROR(memory_.find(access.range).status());
    if (access.range.size > memory_.max_bytes()) return invalid_argument("a range of ", access.range.size, " bytes");
  }
  const std::array<uint32_t, 3>& most = device_->info().max_groups;
  if (op.kind == RecordedOp::Kind::kKernel && (op.grid.x > most[0] || op.grid.y > most[1] || op.grid.z > most[2])) {
    return invalid_argument(op.kernel->name, ": a grid of ", op.grid.x, " x ", op.grid.y, " x ", op.grid.z,
                            " is more than the device's ", most[0], " x ", most[1], " x ", most[2]);
  }
  return ok_status();
}

StatusOr<std::unique_ptr<PreparedRecording>> VulkanStream::prepare(const Recording& recording) {
  RETURN_IF_ERROR(lost_);
  const VulkanFunctions& f = device_->functions();
  auto prepared = std::make_unique<Prepared>(*this);
  uint32_t num_sets = 0, num_operands = 0;
  for (const RecordedOp& op : recording.ops) {
    RETURN_IF_ERROR(check(op));
    if (op.kind != RecordedOp::Kind::kKernel) continue;
    ++num_sets;
    num_operands += static_cast<uint32_t>(op.operands.size());
  }
  if (num_operands > 0) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, num_operands};
    VkDescriptorPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = num_sets;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    TRANSEPT_VULKAN_CALL(f, vkCreateDescriptorPool, device_->handle(), &info, nullptr, &prepared->sets);
  }
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = commands_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  TRANSEPT_VULKAN_CALL(f, vkAllocateCommandBuffers, device_->handle(), &info, &prepared->commands);
  RETURN_IF_ERROR(record(recording, *prepared));
  return std::unique_ptr<PreparedRecording>(std::move(prepared));
}

Status VulkanStream::record(const Recording& recording, Prepared& prepared) {
  const VulkanFunctions& f = device_->functions();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  TRANSEPT_VULKAN_CALL(f, vkBeginCommandBuffer, prepared.commands, &begin);
  const auto barrier = [&](VkPipelineStageFlags then, VkAccessFlags access) {
    VkMemoryBarrier memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    memory.srcAccessMask = kWrites;
    memory.dstAccessMask = access;
    f.vkCmdPipelineBarrier(prepared.commands, kOps, then, 0, 1, &memory, 0, nullptr, 0, nullptr);
  };
  int32_t wave = -1;
  for (const RecordedOp& op : recording.ops) {
    if (op.wave != wave) barrier(kOps | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, kReads | kWrites);
    wave = op.wave;
    RETURN_IF_ERROR(record_op(op, prepared));
  }
  barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return vulkan_status("vkEndCommandBuffer", f.vkEndCommandBuffer(prepared.commands));
}

Status VulkanStream::record_op(const RecordedOp& op, Prepared& prepared) {
  const VulkanFunctions& f = device_->functions();
  if (op.kind == RecordedOp::Kind::kKernel) return record_kernel(op, prepared);
  ASSIGN_OR_RETURN(const VkBuffer first, memory_.find(op.operands[0]));
  if (op.kind == RecordedOp::Kind::kFill) {
    f.vkCmdFillBuffer(prepared.commands, first, op.operands[0].begin, op.operands[0].size, op.word);
    return ok_status();
  }
  ASSIGN_OR_RETURN(const VkBuffer second, memory_.find(op.operands[1]));
  const VkBufferCopy copy{op.operands[0].begin, op.operands[1].begin, op.operands[0].size};
  f.vkCmdCopyBuffer(prepared.commands, first, second, 1, &copy);
  return ok_status();
}

Status VulkanStream::record_kernel(const RecordedOp& op, Prepared& prepared) {
  const VulkanFunctions& f = device_->functions();
  ASSIGN_OR_RETURN(const VulkanPipeline pipeline, device_->pipeline(*op.kernel));
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorPool = prepared.sets;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &pipeline.operands;
  VkDescriptorSet set = VK_NULL_HANDLE;
  TRANSEPT_VULKAN_CALL(f, vkAllocateDescriptorSets, device_->handle(), &allocate, &set);

  // What is bound begins at the device's alignment; the shader adds the rest.
  std::array<uint32_t, kPushBytes / sizeof(uint32_t)> push{};
  std::array<VkDescriptorBufferInfo, kMaxOperands> infos{};
  std::array<VkWriteDescriptorSet, kMaxOperands> writes{};
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const BufferRange& range = op.operands[i];
    ASSIGN_OR_RETURN(const VkBuffer buffer, memory_.find(range));
    const uint64_t before = range.begin % device_->info().range_alignment;
    push[i / 4] |= static_cast<uint32_t>(before / sizeof(uint32_t)) << i % 4 * 8;
    infos[i] = {buffer, range.begin - before, range.size + before};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = static_cast<uint32_t>(i);
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  f.vkUpdateDescriptorSets(device_->handle(), static_cast<uint32_t>(op.operands.size()), writes.data(), 0, nullptr);
  CHECK(op.arguments.size() <= kMaxArgumentBytes);
  if (!op.arguments.empty())
    std::memcpy(push.data() + kMaxOperands / sizeof(uint32_t), op.arguments.data(), op.arguments.size());
  f.vkCmdBindPipeline(prepared.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
  f.vkCmdBindDescriptorSets(prepared.commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0, nullptr);
  f.vkCmdPushConstants(prepared.commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, push.data());
  if (op.grid.indirect.size == 0) {
    f.vkCmdDispatch(prepared.commands, op.grid.x, op.grid.y, op.grid.z);
    return ok_status();
  }
  ASSIGN_OR_RETURN(const VkBuffer counts, memory_.find(op.grid.indirect));
  f.vkCmdDispatchIndirect(prepared.commands, counts, op.grid.indirect.begin);
  return ok_status();
}

StatusOr<Ticket> VulkanStream::submit(PreparedRecording& recording) {
  RETURN_IF_ERROR(lost_);
  auto& prepared = static_cast<Prepared&>(recording);
  CHECK(&prepared.stream == this);
  if (static_cast<uint64_t>(prepared.last) > done_) {
    return absl::FailedPreconditionError("a recording is submitted while it runs");
  }
  const uint64_t ticket = last_ticket_ + 1;
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &ticket;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &prepared.commands;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  const Status submitted =
      vulkan_status("vkQueueSubmit", device_->functions().vkQueueSubmit(device_->queue(), 1, &info, VK_NULL_HANDLE));
  if (absl::IsUnavailable(submitted)) lost_ = submitted;
  RETURN_IF_ERROR(submitted);
  last_ticket_ = ticket;
  prepared.last = Ticket{ticket};
  return prepared.last;
}

Status VulkanStream::wait(Ticket ticket, TimePoint deadline) {
  const auto value = static_cast<uint64_t>(ticket);
  CHECK(value <= last_ticket_);
  if (value <= done_) return ok_status();
  RETURN_IF_ERROR(lost_);
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &value;
  Status ended = vulkan_status(
      "vkWaitSemaphores", device_->functions().vkWaitSemaphores(device_->handle(), &info, nanoseconds_until(deadline)));
  if (absl::IsUnavailable(ended)) lost_ = ended;
  if (ended.ok()) done_ = value;
  return ended;
}

}  // namespace transept
