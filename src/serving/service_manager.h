// SPDX-License-Identifier: Apache-2.0
// What systemd is told of the service, by its own small protocol: one datagram to the socket of $NOTIFY_SOCKET. Without one, nothing.
#pragma once

#include <string_view>

namespace weir::serving {

// "READY=1", "STOPPING=1", "RELOADING=1\nMONOTONIC_USEC=…", "STATUS=…". False when nobody was told.
bool notify_service_manager(std::string_view state);
void notify_ready();
void notify_reloading();
void notify_stopping();
// "WATCHDOG=1", when $WATCHDOG_USEC asks for it and half of the time has passed.
void notify_alive();

}  // namespace weir::serving
