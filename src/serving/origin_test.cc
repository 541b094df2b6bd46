// SPDX-License-Identifier: Apache-2.0
#include "serving/origin.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::serving {
namespace {

TEST(Origin, PagesOfThisMachineAndThoseThatWereNamed) {
  const std::vector<std::string> none, one{"https://app.example"}, all{"*"};
  for (const char* fine : {"", "http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", "https://localhost"})
    EXPECT_TRUE(origin_may_send(fine, none)) << fine;
  for (const char* foreign : {"https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example:80", "null",
                              "http://", "http://[::1].evil", "http://[", "localhost", "https://app.example"})
    EXPECT_FALSE(origin_may_send(foreign, none)) << foreign;
  EXPECT_TRUE(origin_may_send("https://app.example", one));
  EXPECT_FALSE(origin_may_send("https://app.example:444", one));
  EXPECT_TRUE(origin_may_send("https://evil.example", all));
}

}  // namespace
}  // namespace weir::serving
