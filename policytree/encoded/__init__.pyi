"""The names of ``policytree.encoded``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.encoded.encoding import encode as encode
from policytree.encoded.plan import open_encoded as open_encoded
from policytree.encoded.predict import predict_to_file as predict_to_file
from policytree.encoded.rewards import stream_rewards as stream_rewards
from policytree.evaluation.streaming.leaves import streamed_leaf_summary as streamed_leaf_summary
from policytree.evaluation.streaming.values import streamed_policy_values as streamed_policy_values
