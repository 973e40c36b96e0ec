"""The public kit for testing adapters of Holdfast: contract suites, and file systems that fail.

A suite is a plain class whose methods begin with `test_`, and every expectation is an `assert`.
Subclass it, define how to open your adapter, and let pytest collect the subclass:

    class TestMyObjects(DurableObjectStoreContract):
        def open_store(self, place: Path) -> ObjectStore:
            return MyObjects(place)

Each test gets an empty directory `tmp_path` from pytest. It passes this to `open_store` or
`open_catalog` as the place for your adapter's files. A suite whose name begins with `Durable` also
opens the adapter again and expects to find everything.

The smallest adapters that satisfy the contracts are in `holdfast.adapters.memory`.
"""
