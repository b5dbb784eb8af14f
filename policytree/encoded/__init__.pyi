"""The names of ``policytree.encoded``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.encoded.encoding import encode as encode
from policytree.encoded.plan import open_encoded as open_encoded
from policytree.encoded.rewards import stream_rewards as stream_rewards
