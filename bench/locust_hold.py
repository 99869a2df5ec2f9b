"""What each user does in `bench/fleet`, for Locust: a request over a kept connection, then 2 to 6 s of think time."""

from locust import FastHttpUser, between, task


class Holder(FastHttpUser):
    wait_time = between(2, 6)

    @task
    def request(self):
        self.client.get("/")
