"""What crawls suffer from: faults that many pairs share, each found once and named."""
