// The threads of a kernel on a CPU: each has a stack of its own and runs until it waits for others.
//
// Blocks run one after the other, the warps of a block in an order that changes from block to
// block. What a program may not rely on happens as late or as badly as it may: copies to shared
// memory arrive when they are waited for, and shared memory begins as NaNs. Lanes of a warp that
// wait at different places end the program with a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace simt {

inline constexpr int kLanes = 32;

struct Extent {
  unsigned x, y, z;
};

// Runs all threads of all blocks of a grid. One grid runs at a time.
void run_grid(Extent grid, Extent block, size_t shared_bytes, const std::function<void()>& kernel);

// What follows is for the threads of a kernel.

// The shared memory that the launch asked for.
extern std::byte launch_memory[];

// What a lane brings to an operation of its warp, and what it takes from it.
struct Payload {
  uint32_t words[8] = {};
};
// in, out: of all lanes; `present`: a bit for each that has not ended.
using WarpOperation = void (*)(const Payload* in, Payload* out, uint32_t present);
Payload with_warp(const Payload& mine, WarpOperation operation);

// A barrier of the whole block; how many threads brought true.
int sync_block(bool value);
// A barrier of `threads` threads alone.
void sync_some(int threads);

// Copies that are under way until they are waited for.
void copy_later(void* to, const void* from, size_t bytes);
void end_copy_group();
void wait_for_copies(int newest_groups);

}  // namespace simt

// Of the thread that runs.
extern simt::Extent threadIdx, blockIdx, blockDim, gridDim;
