#include "kernels/ref/ref_ops.h"

#include <cstring>

#include "kernels/ref/ref_ops_impl.h"

namespace slip {

std::unique_ptr<Ops> make_ref_ops() { return std::make_unique<RefOps>(); }

Weight RefOps::pack(const Weight& plain, std::span<std::byte> storage) {
  check(!plain.packed, "pack: the weight is packed already");
  check(storage.size() >= plain_bytes(plain.info), "pack: storage has ", storage.size(),
        " bytes, needs ", plain_bytes(plain.info));
  const Weight kept = plain_weight(plain.info, storage.data());
  // memmove: a caller may pack in place.
  std::memmove(kept.values.data, plain.values.data, plain.values.bytes());
  if (!plain.scales.empty())
    std::memmove(kept.scales.data, plain.scales.data, plain.scales.bytes());
  return kept;
}

}  // namespace slip
