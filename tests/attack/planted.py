from tests.attack.trying import Outcome, Setting
def tries(setting): 
    yield from ()
