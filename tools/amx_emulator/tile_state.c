// The operating system's part of AMX for the kernel that runs in Bochs (tools/amx_emulator.py), and for nothing else.
//
// Linux gives AMX only to processors with XFD, a trap at a task's first tile; Bochs has AMX but no XFD. The kernel is
// therefore started without its own support (clearcpuid=), and this module does the three things that a program sees of
// it: XCR0 lets tiles be used, arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) is granted, and every task has tiles of its
// own, kept when another task runs. One processor only.
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

#include <asm/special_insns.h>

#define TILE_STATES 0x60000ull  // XTILECFG and XTILEDATA
#define REQUEST_PERMISSION 0x1023
#define XTILEDATA 18
#define MAX_TASKS 64
#define STATE_BYTES 12288  // more than an XSAVE area that ends with the tiles

struct kept_tiles {
  struct task_struct* owner;  // NULL: free
  u64 started;                // of the owner: a task_struct may come back as another task
};

static struct kept_tiles kept[MAX_TASKS];
static u8* states;  // [MAX_TASKS][STATE_BYTES]

static bool tiles_in_use(void) {
  u32 low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));  // what is not in its initial state
  return low & TILE_STATES;
}

static void xsave_tiles(u8* to) {
  asm volatile("xsave64 (%0)" : : "r"(to), "a"((u32)TILE_STATES), "d"(0) : "memory");
}

static void xrstor_tiles(const u8* from) {
  asm volatile("xrstor64 (%0)" : : "r"(from), "a"((u32)TILE_STATES), "d"(0) : "memory");
}

// The place that holds a task's tiles; of NULL, a free one. -1: there is none.
static int place_of(struct task_struct* task) {
  int i;
  for (i = 0; i < MAX_TASKS; ++i) {
    if (kept[i].owner == task && (!task || kept[i].started == task->start_time)) return i;
  }
  return -1;
}

static void keep(struct task_struct* task) {
  int place = place_of(NULL);
  BUG_ON(place < 0);
  kept[place].owner = task;
  kept[place].started = task->start_time;
  xsave_tiles(states + (size_t)place * STATE_BYTES);
  tile_release();
}

static void bring_back(struct task_struct* task) {
  const int place = place_of(task);
  if (place < 0) return;
  xrstor_tiles(states + (size_t)place * STATE_BYTES);
  kept[place].owner = NULL;
}

static void on_switch(void* unused, bool preempt, struct task_struct* prev, struct task_struct* next,
                      unsigned int prev_state) {
  if (tiles_in_use()) {
    if (prev_state & TASK_DEAD) {
      tile_release();
    } else {
      keep(prev);
    }
  }
  bring_back(next);
}

// --- arch_prctl

static int on_arch_prctl(struct kretprobe_instance* call, struct pt_regs* regs) {
  const struct pt_regs* user = (const struct pt_regs*)regs->di;
  return user->di == REQUEST_PERMISSION && user->si == XTILEDATA ? 0 : 1;  // 1: its return is not ours
}

static int grant(struct kretprobe_instance* call, struct pt_regs* regs) {
  regs_set_return_value(regs, 0);
  return 0;
}

static struct kretprobe permission = {
    .kp.symbol_name = "__x64_sys_arch_prctl", .entry_handler = on_arch_prctl, .handler = grant, .maxactive = 16};

// --- the module

static struct tracepoint* sched_switch;

static void find_sched_switch(struct tracepoint* candidate, void* unused) {
  if (strcmp(candidate->name, "sched_switch") == 0) sched_switch = candidate;
}

static void let_tiles_be_used(void) {
  u32 low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  asm volatile("xsetbv" : : "a"(low | (u32)TILE_STATES), "d"(high), "c"(0));
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  pr_info("tile_state: XCR0 is now %x\n", low);
}

static int __init tile_state_init(void) {
  int failed;
  for_each_kernel_tracepoint(find_sched_switch, NULL);
  if (!sched_switch || num_online_cpus() != 1) return -ENODEV;
  states = vzalloc((size_t)MAX_TASKS * STATE_BYTES);
  if (!states) return -ENOMEM;
  let_tiles_be_used();
  failed = tracepoint_probe_register(sched_switch, on_switch, NULL);
  return failed ? failed : register_kretprobe(&permission);
}

module_init(tile_state_init);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Tile state of tasks, for an emulator without XFD");
