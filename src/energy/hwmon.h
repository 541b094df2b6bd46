// SPDX-License-Identifier: Apache-2.0
// Power (µW) and energy (µJ) sensors of the kernel's hardware monitoring: power meters of the board (ACPI, IPMI bridges), graphics cards,
// sensors on rails. Only what is known to be the whole machine, a socket or a graphics card counts; other sensors are shown.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "energy/meter.h"

namespace weir::energy {

// Null when there is no such sensor.
std::unique_ptr<Meter> open_hwmon(const std::filesystem::path& hwmon, std::vector<std::string>& notes);

}  // namespace weir::energy
