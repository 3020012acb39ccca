"""stable-baselines3 over our environments: `PPO("MlpPolicy", tetrion.sb3.VecEnv("tetris", 64))`.

Imported on its own, since it needs stable-baselines3 (and with it torch)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common import vec_env  # type: ignore[import-not-found, unused-ignore]

from . import _spaces, vector
from .envs import checked_seed

Indices = int | Iterable[int] | None


class VecEnv(vec_env.VecEnv):  # type: ignore[misc, unused-ignore]
    """`num_envs` environments as stable-baselines3's VecEnv: episodes restart in the step that ends
    them, and infos[i] then has terminal_observation, TimeLimit.truncated and episode (r, l), as
    Monitor gives it. sb3-contrib's MaskablePPO finds the masks of tetris-placement.

    `options`: of TetrionVectorEnv, but autoreset_mode, batch_size and copy: stable-baselines3 keeps
    the observations of a step until it has taken the next one, so each step returns new arrays.
    """

    def __init__(self, env: _spaces.EnvName, num_envs: int, **options: Any):
        if not options.get("copy", True):
            raise ValueError(
                "copy=False: stable-baselines3 stores a step's observations after the next step,"
                " which would have overwritten them; leave copy out"
            )
        mode = options.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP.value):
            raise ValueError(
                f"autoreset_mode={mode!r}: stable-baselines3 needs episodes that restart in the"
                " step that ends them, SameStep; leave autoreset_mode out"
            )
        self.envs = vector.TetrionVectorEnv(env, num_envs, **options)
        self._actions: np.ndarray | None = None
        self._seed: int | None = None
        self.render_mode = self.envs.render_mode
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Environment i gets seed + i at the next reset."""
        self._seed = None if seed is None else checked_seed(seed)
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> Any:
        """Observations of new episodes."""
        observations, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self.reset_infos = [self._info(infos, env) for env in range(self.num_envs)]
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps the actions [n] for step_wait."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Observations, rewards float32 [n], dones bool [n], and a dict an environment."""
        if self._actions is None:
            raise RuntimeError("step_wait without step_async")
        observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        self._actions = None
        dones = terminations | truncations
        each = [self._info(infos, env) for env in range(self.num_envs)]
        for env in np.flatnonzero(dones).tolist():
            final = infos["final_info"]
            each[env]["terminal_observation"] = infos["final_obs"][env]
            each[env]["TimeLimit.truncated"] = bool(truncations[env] and not terminations[env])
            each[env]["episode"] = {
                "r": float(final["episode_return"][env]),
                "l": int(final["episode_length"][env]),
            }
            if "lines" in final:
                each[env]["lines"] = int(final["lines"][env])
        return observations, rewards, dones, each

    def close(self) -> None:
        """Ends the threads."""
        self.envs.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Pictures, where render_mode is "rgb_array"."""
        drawn = self.envs.render() if self.render_mode == "rgb_array" else None
        return [None] * self.num_envs if drawn is None else [np.asarray(one) for one in drawn]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Attributes of the environments `indices`, as TetrionVectorEnv.get_attr."""
        return list(self.envs.call_of(self._get_indices(indices), attr_name))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """One value for all of `indices`; they must be all of them."""
        chosen = list(self._get_indices(indices))
        if len(chosen) != self.num_envs:
            raise ValueError("set_attr sets an attribute of every environment: leave indices out")
        self.envs.set_attr(attr_name, [value] * self.num_envs)  # a list is a value here

    def env_method(
        self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any
    ) -> list[Any]:
        """What a method of each of the environments `indices` returns, as TetrionVectorEnv.call."""
        return list(self.envs.call_of(self._get_indices(indices), method_name, *args, **kwargs))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Never: they are no Python objects."""
        return [False for _ in self._get_indices(indices)]

    @staticmethod
    def _info(infos: dict[str, Any], env: int) -> dict[str, Any]:
        """What MaskablePPO and users look at in a running episode."""
        return {"action_mask": infos["action_mask"][env]} if "action_mask" in infos else {}
