package limits

import (
	"testing"

	"spamgate/internal/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
