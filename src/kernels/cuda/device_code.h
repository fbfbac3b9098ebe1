// Which GPUs the program can run on.
#pragma once

namespace slip {

// Whether there is machine code, or code that the driver can translate, for the current device.
bool has_code_for_device();

}  // namespace slip
